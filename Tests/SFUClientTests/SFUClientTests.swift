import Testing

@testable import SFUClient
