import Foundation
public import Logging
public import MartletKafka
import MartletStore
import MartletSync

/// What an examination found.
public struct Finding: Sendable, Equatable {
    public enum Level: String, Sendable {
        case ok
        case warning
        case problem
    }

    public var check: String
    public var level: Level
    public var message: String
    /// What to do about it.
    public var remedy: String?
}

/// Examines a store's file.
public enum StoreDoctor {
    /// Opens the store for reading, and looks at everything that usually goes wrong.
    ///
    /// - Throws: ``/MartletStore/StoreError`` when the file can't be opened at all.
    public static func examine(path: String) throws -> [Finding] {
        var configuration = StoreConfiguration()
        configuration.isReadOnly = true
        let store = try Store(path: path, configuration: configuration)
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
            "integrity", facts.integrity == "ok" ? nil : facts.integrity, ok: "the database is whole",
            remedy: "Restore the file with its -wal file, or copy another node's.")
        add(
            "foreign keys",
            facts.foreignKeyViolations == 0 ? nil : "\(facts.foreignKeyViolations) rows refer to rows that don't exist",
            ok: "every reference has its target", level: .warning, remedy: "See PRAGMA foreign_key_check.")
        add(
            "journal", facts.journalMode == "wal" ? nil : "the journal mode is \(facts.journalMode)",
            ok: "write-ahead log",
            remedy: "Run: sqlite3 \(path) 'PRAGMA journal_mode = WAL'")
        add(
            "triggers",
            facts.missingTriggers.isEmpty
                ? nil : "capture triggers are missing on \(facts.missingTriggers.joined(separator: ", "))",
            ok: "capture triggers are in place",
            remedy: "Start the agent, or run any martlet command that writes: they are made anew.")
        let lost = try store.lostEntities()
        add(
            "tables", lost.isEmpty ? nil : lost.map { "\($0.name): \($0.reason)" }.joined(separator: "; "),
            ok: "every tracked table is there",
            level: .warning, remedy: "Attach the tables again.")
        add(
            "permissions", FileMode.exposed(path, beside: ["-wal", "-shm", ".lock"]),
            ok: "only its owner and group get at the file", level: .warning,
            remedy: "Run: chmod o-rwx on them. Programs of other users share the file through a group.")
        // The WAL-reset race: https://sqlite.org/releaselog/3_51_3.html
        add(
            "sqlite",
            facts.sqliteVersion < 3_051_003
                ? "SQLite \(facts.sqliteVersionText) can lose a checkpoint when two connections reset the log at once"
                : nil,
            ok: "SQLite \(facts.sqliteVersionText)", level: .warning,
            remedy: "Let one process checkpoint (the agent), or use SQLite 3.51.3.")
        let status = try SyncStatus.read(store)
        add(
            "quarantine",
            status.quarantinedCount == 0 ? nil : "\(status.quarantinedCount) messages can't be understood",
            ok: "nothing", remedy: "See: martlet quarantine \(path)")
        add(
            "parked", status.parkedCount == 0 ? nil : "\(status.parkedCount) rows or changes wait", ok: "nothing",
            level: .warning, remedy: "See: martlet parked \(path)")
        let gaps = status.origins.filter { !$0.gaps.isEmpty }.map { $0.name ?? $0.node.description }
        add(
            "gaps", gaps.isEmpty ? nil : "transactions of \(gaps.joined(separator: ", ")) never came",
            ok: "nothing is missing",
            remedy: "They come when that node publishes them again; it does where the topic lost them.")
        let free =
            (try? FileManager.default.attributesOfFileSystem(
                forPath: URL(fileURLWithPath: path).deletingLastPathComponent().path)[.systemFreeSize]) as? Int64
        if let free {
            add(
                "disk", free < 100 << 20 ? "\(free >> 20) MiB are free" : nil, ok: "\(free >> 20) MiB are free",
                level: .warning, remedy: "Free some space.")
        }
        return findings
    }
}

/// Examines the broker and the topic.
public enum BrokerDoctor {
    public static func examine(_ configuration: KafkaConfiguration, log: Logger) -> [Finding] {
        do {
            let topic = try KafkaAdmin(configuration, logger: log).describeTopic(timeout: .seconds(10))
            var findings = [
                Finding(check: "topic", level: .ok, message: "\(topic.name) has \(topic.partitions.count) partitions")
            ]
            if topic.settings?["message.timestamp.type"].map({ $0 != "LogAppendTime" }) ?? false {
                findings.append(
                    Finding(
                        check: "topic timestamps", level: .warning,
                        message: "the broker does not stamp messages on arrival",
                        remedy: "Set message.timestamp.type=LogAppendTime: it shows which node's clock is wrong."))
            }
            if topic.settings?["cleanup.policy"]?.contains("compact") ?? false {
                findings.append(
                    Finding(
                        check: "topic cleanup", level: .problem, message: "the topic is compacted: transactions vanish",
                        remedy: "Set cleanup.policy=delete."))
            }
            return findings
        } catch {
            return [Finding(check: "broker", level: .problem, message: error.message, remedy: error.hint)]
        }
    }
}
