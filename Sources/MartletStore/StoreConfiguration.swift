/// The options for opening a store.
public struct StoreConfiguration: Sendable, Equatable {
    /// The durability of a commit when the power fails.
    public enum Synchronous: String, Sendable, CaseIterable {
        /// The file stays consistent, but a power failure may lose the last transactions. A crash of the program loses
        /// nothing. The default.
        case normal
        /// Every commit is on disk before it returns.
        case full
    }

    public var synchronous: Synchronous = .normal
    /// Whether SQLite overwrites deleted content with zeros. Off by default. Debian's SQLite has it on, which makes
    /// every write slower.
    public var secureDelete: Bool = false
    /// The size of the write-ahead log, in pages, from which it is copied back into the file (a checkpoint). Zero means
    /// never. SQLite's own default is 1,000.
    ///
    /// A separate thread runs the checkpoint, in the agent if one runs on the store; commits continue meanwhile. When
    /// the log reaches eight times this size (twice this size if it is 5,000 pages or more, and 10,000 pages in
    /// between), commits wait until it is copied. It grows beyond that in a larger transaction, and while a reader
    /// still needs it or another program runs a checkpoint.
    public var walAutocheckpointPages: Int = 10_000
    /// The page cache of each connection, in KiB.
    public var cacheKiB: Int = 8_192
    /// How long a statement waits for another connection's lock.
    public var busyTimeout: Duration = .seconds(5)
    /// The author of transactions that other programs commit. Nil by default. Must not be one of
    /// ``TransactionAuthor``.
    public var foreignAuthor: String?
    /// Whether to open the store without writing anything: history can be read, but transactions of other programs are
    /// not closed. The write-ahead log's `-shm` file must exist or be writable.
    public var isReadOnly: Bool = false
    /// False if no GRDB observer will ever watch the store's connection. Statements then compile in two thirds of the
    /// time.
    package var isObserved: Bool = true
    /// False if nothing may run on other threads. Then the commit that finds the log too long runs the checkpoint, as
    /// SQLite does by default.
    package var checkpointsAside: Bool = true
    /// How long a table that was dropped and created again may lack rows that it had before, until they count as
    /// deleted.
    package var schemaPatience: Duration = RecreatedTables.patience
    /// True for the one who holds the agent's lock, if anybody does. Others migrate no store on which an agent runs.
    package var isOfAgent: Bool = false

    public init() {}

    /// Returns every problem with the values, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        var problems: [String] = []
        if walAutocheckpointPages < 0 {
            problems.append("walAutocheckpointPages: \(walAutocheckpointPages) must not be negative; 0 disables it")
        }
        if cacheKiB < 64 { problems.append("cacheKiB: \(cacheKiB) must be at least 64") }
        if busyTimeout < .zero { problems.append("busyTimeout: \(busyTimeout) must not be negative") }
        if let problem = TransactionAuthor.problem(foreignAuthor) { problems.append("foreignAuthor: \(problem)") }
        return problems
    }
}
