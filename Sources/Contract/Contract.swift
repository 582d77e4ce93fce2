/// Version of the IPC contract that these types implement.
public let contractVersion = 1
