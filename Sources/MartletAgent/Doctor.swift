import Foundation
public import Logging
package import MartletKafka
import MartletStore
import MartletSync

/// One result of an examination.
public struct Finding: Sendable, Equatable {
    public enum Level: String, Sendable {
        case ok
        case warning
        case problem
    }

    public var check: String
    public var level: Level
    public var message: String
    /// The instruction that fixes it.
    public var remedy: String?

    package init(check: String, level: Level, message: String, remedy: String? = nil) {
        self.check = check
        self.level = level
        self.message = message
        self.remedy = remedy
    }
}

/// Examines a store's file.
public enum StoreDoctor {
    /// Opens the store for reading, and checks everything that commonly goes wrong.
    ///
    /// - Throws: ``/MartletCore/StoreError`` when the file can't be opened at all.
    public static func examine(path: String) throws -> [Finding] {
        try examine(path: path, minFreeBytes: minFreeBytes)
    }

    package static func examine(path: String, minFreeBytes: Int64) throws -> [Finding] {
        var configuration = StoreConfiguration()
        configuration.isReadOnly = true
        let store = try Store(path: path, configuration: configuration)
        let word = ShellWord.quoted(path)
        var findings: [Finding] = []
        func add(
            _ check: String, _ problem: String?, ok: String, level: Finding.Level = .problem, remedy: String? = nil
        ) {
            findings.append(
                Finding(
                    check: check, level: problem == nil ? .ok : level, message: problem ?? ok,
                    remedy: problem == nil ? nil : remedy))
        }
        let facts = try store.examine()
        add(
            "integrity", facts.integrity == "ok" ? nil : facts.integrity, ok: "SQLite finds no damage",
            remedy: "Restore the file with its -wal file, or copy the file of another node.")
        add(
            "foreign keys",
            facts.foreignKeys.violationCount == 0
                ? nil : "\(facts.foreignKeys.violationCount) rows refer to rows that don't exist",
            ok: "every reference has its target", level: .warning, remedy: "See PRAGMA foreign_key_check.")
        if !facts.foreignKeys.mismatched.isEmpty {
            add(
                "foreign keys",
                """
                SQLite can't check foreign keys of \(facts.foreignKeys.mismatched.joined(separator: ", ")): the \
                columns that they refer to are missing or not unique
                """,
                ok: "", level: .warning,
                remedy:
                    "Create a unique index on the columns referred to, or recreate the table without the foreign key."
            )
        }
        add(
            "journal", facts.journalMode == "wal" ? nil : "the journal mode is \(facts.journalMode)",
            ok: "write-ahead log",
            remedy: "Run: sqlite3 \(word) 'PRAGMA journal_mode = WAL'")
        add(
            "triggers",
            facts.missingTriggers.isEmpty
                ? nil : "capture triggers are missing on \(facts.missingTriggers.joined(separator: ", "))",
            ok: "capture triggers are in place",
            remedy: "Start the agent, or run any martlet command that writes: it recreates them.")
        let lost = try store.lostEntities()
        add(
            "tables", lost.isEmpty ? nil : lost.map { "\($0.name): \($0.reason)" }.joined(separator: "; "),
            ok: "every tracked table exists",
            level: .warning, remedy: "Attach the tables again.")
        add(
            "permissions", FileMode.exposed(path, beside: ["-wal", "-shm", ".lock"]),
            ok: "only its owner and group have access to the file", level: .warning,
            remedy: "Run: chmod o-rwx on them. To share the file with programs of other users, use a group.")
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let files = FileManager.default
        let closed = [path, folder].filter { !files.isWritableFile(atPath: $0) }
        add(
            "writing", closed.isEmpty ? nil : "this user can't write to \(closed.joined(separator: " and "))",
            ok: "this user can write to the file and its folder",
            remedy: "Run as the agent's user, or give this user access: SQLite creates files beside the store.")
        let copy = StorePlace.problem(at: path, recorded: try store.recordedPlace(), store: store.identifier)
        add("copy", copy?.message, ok: "the store is where it last ran", remedy: copy?.hint)
        // The WAL-reset race: https://sqlite.org/releaselog/3_51_3.html
        add(
            "sqlite",
            facts.sqliteVersion < 3_051_003
                ? "SQLite \(facts.sqliteVersionText) can lose a checkpoint when two connections reset the log at once"
                : nil,
            ok: "SQLite \(facts.sqliteVersionText)", level: .warning,
            remedy:
                """
                Use SQLite 3.51.3 or later, or run PRAGMA wal_autocheckpoint = 100000 in other programs that write \
                while the agent runs.
                """
        )
        let status = try SyncStatus.read(store)
        add(
            "quarantine",
            count(
                status.quarantinedCount, "message can't be decoded or verified",
                "messages can't be decoded or verified"),
            ok: "nothing", remedy: "Run: martlet quarantine \(word)")
        add(
            "parked", count(status.parkedCount, "change can't be applied yet", "changes can't be applied yet"),
            ok: "nothing",
            level: .warning, remedy: "Run: martlet parked \(word)")
        let unnamed = try store.rowsWithoutIdentity().sorted { $0.key < $1.key }
        add(
            "identity",
            unnamed.isEmpty
                ? nil
                : unnamed.map { "\($0.value) \($0.value == 1 ? "row" : "rows") of \($0.key)" }.joined(separator: ", ")
                    + " can't be identified on other nodes: a column of the key is NULL",
            ok: "every row has one", level: .warning,
            remedy: "Set the key's columns: from then on the whole row is synced.")
        let refused = try store.parked().filter { $0.detail?.contains(TextEncoding.refusal.message) ?? false }
        add(
            "encoding",
            refused.isEmpty
                ? nil
                : "\(refused.count) changes are parked: \(TextEncoding.refusal.message)",
            ok: "text is stored unchanged",
            level: .warning,
            remedy:
                "Correct the value on the node that wrote it, or give this node a store whose encoding is UTF-8."
        )
        add(
            "schema", try unknownSchema(store), ok: "the tables fit what other nodes send", level: .warning,
            remedy:
                """
                Bring this node's tables up to date with `martlet alter \(word)`, or attach what is missing: the \
                parked changes are applied then.
                """
        )
        let reused = try store.reusedNames()
        add(
            "reused names", reused.isEmpty ? nil : reused.map(\.description).joined(separator: "; "),
            ok: "no table or column has the former name of another one", level: .warning,
            remedy:
                """
                Change the schema of every other node in the same way (`martlet alter`) before anything else is \
                written: until then a node takes values under such a name for those of the former owner. If all nodes \
                have the change, nothing is left to do.
                """
        )
        add(
            "clock", status.clockOffset.flatMap(clockProblem),
            ok: "this node's clock agrees with the broker's, as far as messages show",
            remedy:
                """
                Set the clock of the machine that is wrong, this one or the broker's, and keep it synchronized \
                (chrony, systemd-timesyncd).
                """
        )
        findings += DerivedDoctor.examine(store, path: path)
        findings += try IngestDoctor.examine(store, word: word)
        let future = try FutureStamps.read(store, after: WallClock.milliseconds + maxClockSkew)
        add(
            "stamps",
            future.map {
                """
                \($0.rows) rows are stamped in the future, up to \
                \(Date(timeIntervalSince1970: Double($0.clock) / 1000).formatted(.iso8601)): a clock was ahead. Until \
                then, other nodes park every change of this node
                """
            }, ok: "nothing is stamped in the future",
            remedy: "Set the clock, stop the agent, run: martlet restamp \(word). Then start the agent.")
        add(
            "retention",
            status.unkept.isEmpty
                ? nil
                : """
                the topic does not retain \(status.unkept.reduce(0) { $0 + $1.sequences.count }) transactions of this \
                node (\(status.unkept.reduce(0) { $0 + $1.bytes }) bytes): it drops the first before the last is \
                published
                """,
            ok: "the topic retains what this node publishes",
            remedy:
                """
                Raise retention.bytes and retention.ms of the topic above their size. Stop the agent and run `martlet \
                snapshot make \(word)`, or wait for the next snapshot: other nodes get the transactions from it.
                """
        )
        let gaps = status.origins.filter { !$0.gaps.isEmpty }.map { $0.name ?? $0.node.description }
        add(
            "gaps", gaps.isEmpty ? nil : "transactions of \(gaps.joined(separator: ", ")) never arrived",
            ok: "nothing is missing",
            remedy:
                """
                They arrive when that node republishes them, as it does if the topic lost them. Otherwise load a \
                snapshot of a node that has them (`martlet snapshot make` there, `martlet snapshot load \(word)` \
                here), each while the agent is stopped.
                """
        )
        findings += SpaceDoctor.examine(store, path: path)
        if let free = (try? files.attributesOfFileSystem(forPath: folder)[.systemFreeSize]) as? Int64 {
            add(
                "disk", free < minFreeBytes ? "\(free >> 20) MiB are free" : nil, ok: "\(free >> 20) MiB are free",
                level: .warning, remedy: "Free some space.")
        }
        return findings
    }

    /// The write-ahead log alone takes 40 MB by default before it is copied back.
    private static let minFreeBytes: Int64 = 100 << 20

    /// The default configuration's limit, in milliseconds.
    private static let maxClockSkew = SyncConfiguration().maxClockSkew.wholeMilliseconds

    /// In milliseconds. The clocks of two synchronized machines differ by less.
    private static let maxClockOffset: Int64 = 1000

    /// Returns nil for a count of zero.
    private static func count(_ count: Int, _ one: String, _ several: String) -> String? {
        count == 0 ? nil : "\(count) \(count == 1 ? one : several)"
    }

    /// - Parameter offset: how far this node's clock is ahead of the broker's, in milliseconds.
    private static func clockProblem(_ offset: ClosedRange<Int64>) -> String? {
        if offset.lowerBound > maxClockOffset {
            return "this node's clock is at least \(offset.lowerBound) ms ahead of the broker's"
        }
        if offset.upperBound < -maxClockOffset {
            return "this node's clock is at least \(-offset.upperBound) ms behind the broker's"
        }
        return nil
    }

    /// Describes the tables and columns that other nodes send and this node's schema lacks. Nil if there are none.
    private static func unknownSchema(_ store: Store) throws -> String? {
        let waiting = try store.parked().filter { $0.reason == .unknownSchema }
        guard !waiting.isEmpty else { return nil }
        let names = Set(waiting.map { $0.detail ?? $0.entity ?? "?" }).sorted()
        let shown = names.prefix(5).joined(separator: "; ") + (names.count > 5 ? "; and \(names.count - 5) more" : "")
        return "other nodes send what this schema lacks (\(waiting.count) parked): \(shown)"
    }
}

/// Examines the broker and the topic.
public enum BrokerDoctor {
    /// Asks the broker, and tries the rights that a node needs, for at most ten seconds each. Does neither if a file
    /// that is needed for it can't be used.
    ///
    /// - Parameter path: the store, for the right on the node's own group. Nil: that right is not tried.
    public static func examine(_ configuration: AgentConfiguration, store path: String? = nil, log: Logger) -> [Finding]
    {
        examine(configuration, store: path, log: log, timeout: .seconds(10))
    }

    package static func examine(
        _ configuration: AgentConfiguration, store path: String? = nil, log: Logger, timeout: Duration
    ) -> [Finding] {
        let unreadable = configuration.unreadableFiles.map {
            Finding(
                check: "broker", level: .problem, message: $0,
                remedy: "Correct the path, or let the agent's user read the file. The agent does not start without it.")
        }
        guard unreadable.isEmpty else { return unreadable }
        let token = ConnectionDoctor.token(configuration.kafka).map { [$0] } ?? []
        // Without a valid token the brokers would refuse.
        guard token.allSatisfy({ $0.level == .ok }) else { return token }
        do {
            let admin = try KafkaAdmin(configuration.kafka, logger: log)
            return try token + describe(admin, configuration, timeout)
                + RightsDoctor.examine(configuration, admin, path.flatMap(status), timeout: timeout)
        } catch {
            return token + [Finding(check: "broker", level: .problem, message: error.message, remedy: error.hint)]
        }
    }

    /// Returns no findings if the user may not describe the topic: that is reported with the rights.
    private static func describe(
        _ admin: KafkaAdmin, _ configuration: AgentConfiguration, _ timeout: Duration
    ) throws(BusError) -> [Finding] {
        do throws(BusError) {
            return judge(try admin.describeTopic(timeout: timeout), configuration)
        } catch {
            guard error.code == .unauthorized, error.isRefusedRight else { throw error }
            return []
        }
    }

    private static func status(of path: String) -> SyncStatus? {
        var readOnly = StoreConfiguration()
        readOnly.isReadOnly = true
        guard let store = try? Store(path: path, configuration: readOnly) else { return nil }
        defer { try? store.close() }
        return try? SyncStatus.read(store)
    }

    /// Compares a topic with the configuration. Settings that the broker doesn't report are not judged.
    package static func judge(_ topic: KafkaTopicDescription, _ configuration: AgentConfiguration) -> [Finding] {
        let count = topic.partitions.count
        var findings = [
            Finding(
                check: "topic", level: .ok,
                message: "\(topic.name) has \(count) \(count == 1 ? "partition" : "partitions")")
        ]
        func add(_ check: String, _ level: Finding.Level, _ message: String, _ remedy: String) {
            findings.append(Finding(check: "topic \(check)", level: level, message: message, remedy: remedy))
        }
        let leaderless = topic.partitions.filter { $0.leader < 0 }.map { "\($0.id)" }
        if !leaderless.isEmpty {
            add(
                "partitions", .problem, "partition \(leaderless.joined(separator: ", ")) has no leader",
                "Check the brokers that hold it: until then it can be neither read nor written.")
        }
        let behind = topic.partitions.filter { $0.inSyncReplicas.count < $0.replicas.count }.map { "\($0.id)" }
        if !behind.isEmpty {
            add(
                "replicas", .warning, "partition \(behind.joined(separator: ", ")) has too few in-sync replicas",
                "Check the brokers that hold it: another failure may lose its messages.")
        }
        if topic.brokers.count > 1, topic.partitions.contains(where: { $0.replicas.count == 1 }) {
            add(
                "replicas", .warning, "a partition has only one replica; there are \(topic.brokers.count) brokers",
                "Raise its replication factor (kafka-reassign-partitions.sh): a lost disk would lose its messages.")
        }
        guard let settings = topic.settings else { return findings }
        if settings["message.timestamp.type"].map({ $0 != "LogAppendTime" }) ?? false {
            add(
                "timestamps", .warning, "the broker does not timestamp messages on arrival",
                "Set message.timestamp.type=LogAppendTime: those timestamps show which node's clock is wrong.")
        }
        if settings["cleanup.policy"]?.contains("compact") ?? false {
            add("cleanup", .problem, "the topic is compacted, which deletes transactions", "Set cleanup.policy=delete.")
        }
        if let most = settings["max.message.bytes"].flatMap({ Int($0) }) {
            if most < minBatchBytes {
                add(
                    "size", .problem, "the topic accepts at most \(most) bytes at once",
                    """
                    Set max.message.bytes=1048588, Kafka's own default: transactions have to be split into chunks, and \
                    these would be too small.
                    """
                )
            } else if most < configuration.sync.maxMessageBytes {
                findings.append(
                    Finding(
                        check: "topic size", level: .ok,
                        message: "it accepts \(most) bytes at once: larger transactions are split into chunks"))
            }
        }
        if let kept = settings["retention.ms"].flatMap({ Int64($0) }), kept > 0 {
            let interval = configuration.snapshot.interval
            if interval == .zero {
                add(
                    "retention", .warning, "messages are kept for \(days(kept)), and this node makes no snapshots",
                    "Let a node make them (snapshot.interval): without one, a node that was away longer can't catch up."
                )
            } else if .milliseconds(kept) < interval * 2 {
                add(
                    "retention", .warning,
                    "messages are kept for \(days(kept)), less than two snapshot intervals (snapshot.interval)",
                    """
                    Raise retention.ms, or lower snapshot.interval: a late joiner needs a snapshot, and all messages \
                    after it.
                    """
                )
            }
        }
        return findings
    }

    /// The size of the smallest chunk, with its key, headers and framing.
    private static let minBatchBytes = 2000

    private static func days(_ milliseconds: Int64) -> String {
        let hours = Double(milliseconds) / 3_600_000
        return hours < 48 ? String(format: "%.1f hours", hours) : String(format: "%.1f days", hours / 24)
    }
}
