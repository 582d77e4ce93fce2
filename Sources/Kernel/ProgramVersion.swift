/// The version of sfud's programs, which `--version` prints.
///
/// The file VERSION decides it; a test holds this constant and the packages against that file.
package enum ProgramVersion {
    /// By the rules of Semantic Versioning 2.0.0, without a prefix.
    package static let text = "0.2.0"
}
