extension IngestError.Code {
    /// The table does not exist, is not tracked, or can't take rows of a source.
    public static let table = IngestError.Code(rawValue: "table")
    /// The record has no time, or one that has to wait.
    public static let clock = IngestError.Code(rawValue: "clock")
    /// The record can't be read, or is too large.
    public static let unreadable = IngestError.Code(rawValue: "unreadable")
    /// The change that the record makes is refused.
    public static let refused = IngestError.Code(rawValue: "refused")
}
