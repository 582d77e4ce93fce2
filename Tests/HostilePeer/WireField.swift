/// A field of a message that an adversary may vary.
package enum WireField: UInt8, CaseIterable, Hashable, Sendable {
    // Of sender and receiver reports.
    case ntp, rtpTime, packetCount, octetCount
    case fractionLost, cumulativeLost, highestSequence, jitter, lastReport, reportDelay
    // Of feedback.
    case baseSequence, statusCount, referenceTime, feedbackCount, statusChunk, arrivalDelta
    case bitrateExponent, bitrateMantissa, lostSequence, lostMask, requestSequence
    // Of media.
    case sequence, timestamp, source, payloadType, padding
    case pictureID, tl0PictureIndex, temporalLayer, audioLevel
    case descriptorFlags, descriptorFrame, descriptorStructure
    case layersAllocation, captureTime, sendTime, transportSequence
    // Of connectivity checks and of DTLS records.
    case priority, tieBreaker, attributeType, attributeLength
    case recordType, recordEpoch, recordSequence, recordLength

    package var bits: Int {
        switch self {
        case .ntp, .tieBreaker, .captureTime: 64
        case .recordSequence: 48
        case .rtpTime, .packetCount, .octetCount, .highestSequence, .jitter, .lastReport,
            .reportDelay, .timestamp, .source, .priority:
            32
        case .cumulativeLost, .referenceTime, .sendTime, .descriptorStructure: 24
        case .bitrateMantissa: 18
        case .baseSequence, .statusCount, .statusChunk, .arrivalDelta, .lostSequence, .lostMask,
            .sequence, .descriptorFrame, .layersAllocation, .transportSequence, .attributeType,
            .attributeLength, .recordEpoch, .recordLength:
            16
        case .pictureID: 15
        case .fractionLost, .feedbackCount, .requestSequence, .tl0PictureIndex, .audioLevel,
            .descriptorFlags, .recordType, .padding:
            8
        case .payloadType: 7
        case .bitrateExponent: 6
        case .temporalLayer: 2
        }
    }
}

/// The varied fields, and the plain values of all others.
package struct FieldValues: Sendable {
    /// Values of an honest sender, by field; 0 where there is none.
    package var plain: [WireField: UInt64] = [:]
    private var sources: [WireField: ValueSource] = [:]

    package init() {}

    package var isEmpty: Bool { sources.isEmpty }

    /// Varies a field with values from a source from now on.
    package mutating func play(_ field: WireField, _ source: ValueSource) {
        sources[field] = source
    }

    /// Varies a field with a randomly drawn source.
    package mutating func play(
        _ field: WireField,
        using random: inout some RandomNumberGenerator
    ) {
        let start = plain[field] ?? 0
        sources[field] = ValueSource(bits: field.bits, from: start, using: &random)
    }

    /// Restores the plain values of all fields.
    package mutating func stop() { sources = [:] }

    package mutating func next(
        _ field: WireField,
        using random: inout some RandomNumberGenerator
    ) -> UInt64 {
        if sources[field] != nil {
            return sources[field]?.next(using: &random) ?? 0
        }
        return plain[field] ?? 0
    }
}
