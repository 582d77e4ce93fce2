/// Limits on a session description; each count is per description or per m-line.
public enum SDPLimits {
    public static let bytes = 262_144
    public static let mediaLines = 100
    public static let lineBytes = 8_192
    public static let midBytes = 48
    public static let ridBytes = 64
    public static let formats = 128
    public static let feedbackKinds = 16
    public static let extensions = 64
    public static let rids = 16
    public static let sources = 64
    public static let sourceGroups = 64
    public static let fingerprints = 16
}
