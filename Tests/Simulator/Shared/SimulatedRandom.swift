package import TestSupport

/// The tests' generator, by the name that this folder gives it.
package typealias SimulatedRandom = SeededRandom
