/// The version of the contract that these types speak.
public let contractVersion = 1
