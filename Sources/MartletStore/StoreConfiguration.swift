/// How a store is opened.
public struct StoreConfiguration: Sendable, Equatable {
    /// What a commit promises when the power fails.
    public enum Synchronous: String, Sendable, CaseIterable {
        /// The file stays consistent; the last transactions before a power cut may be gone. A crash of the program or
        /// of its process loses nothing. The default.
        case normal
        /// Every commit is on the disk before it returns.
        case full
    }

    public var synchronous: Synchronous = .normal
    /// Overwrites deleted content with zeros. Off by default; Debian's SQLite has it on, which makes every write
    /// slower.
    public var secureDelete: Bool = false
    /// Size of the write-ahead log, in pages, from which it is copied back into the file (a checkpoint). Zero: never.
    /// SQLite's own default is 1,000.
    ///
    /// That is done on a thread of its own, by the agent where one runs on the store; commits go on meanwhile. From
    /// eight times this size on (twice this size where it is 5,000 pages or more, and 10,000 pages in between) they
    /// wait until it is copied. It grows beyond that in a larger transaction, and while a reader still needs it or
    /// another program copies.
    public var walAutocheckpointPages: Int = 10_000
    /// Page cache of each connection, in KiB.
    public var cacheKiB: Int = 8_192
    /// How long a statement waits for another connection's lock.
    public var busyTimeout: Duration = .seconds(5)
    /// The author of transactions that other programs commit. Absent (`nil`) by default.
    public var foreignAuthor: String?
    /// Opens without writing anything: history is read, foreign transactions are not sealed. The write-ahead log's
    /// `-shm` file must be there or be writable.
    public var isReadOnly: Bool = false
    /// False where no GRDB observer will ever look at the store's connection: statements compile in two thirds of the
    /// time then.
    package var isObserved: Bool = true
    /// False where nothing may happen on other threads: the commit that finds the log long copies it, as SQLite does by
    /// itself.
    package var checkpointsAside: Bool = true
    /// How long a table that was dropped and made anew may stay without rows that it had before they count as deleted.
    package var schemaPatience: Duration = RemadeTables.patience

    public init() {}

    /// Every problem with the values, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        var problems: [String] = []
        if walAutocheckpointPages < 0 {
            problems.append("walAutocheckpointPages: \(walAutocheckpointPages) must not be negative; 0 disables it")
        }
        if cacheKiB < 64 { problems.append("cacheKiB: \(cacheKiB) must be at least 64") }
        if busyTimeout < .zero { problems.append("busyTimeout: \(busyTimeout) must not be negative") }
        return problems
    }
}
