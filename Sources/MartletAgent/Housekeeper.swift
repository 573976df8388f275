import Foundation
import Logging
import MartletStore
import MartletSync

/// Deletes old history, gives free space back, logs the progress of a long catch-up, and warns of problems with the
/// schema, while an agent runs.
struct Housekeeper {
    let engine: SyncEngine
    let consumer: Consumer
    let configuration: AgentConfiguration
    let log: Logger

    /// How many messages have to wait before the log says that the node is catching up.
    private static let leastLag: Int64 = 1000

    /// Runs until the consumer is stopped, or the path leads to another file. Blocks the calling thread.
    ///
    /// - Returns: the error in the second case.
    func run() -> StoreError? {
        var housekeeping = Housekeeping()
        while !consumer.stopSignal.isStopped {
            if let moved = storeHasMoved() { return moved }
            reportCatchUp()
            // What can't be read now is looked at again later.
            if let found = try? engine.reusedNames() { warn(ofReused: housekeeping.news(reused: found)) }
            if let found = try? engine.lostEntities() {
                let news = housekeeping.news(lost: Set(found.map(\.name)))
                warn(ofLost: found.filter { news.contains($0.name) })
            }
            reportRebuilt()
            if housekeeping.takeRetention(at: .now) {
                retain()
                giveBack(&housekeeping)
            }
            consumer.stopSignal.wait(timeout: Housekeeping.interval)
        }
        return nil
    }

    /// Returns an error if the path leads to another file by now: the agent would go on syncing a file that nobody else
    /// has open.
    private func storeHasMoved() -> StoreError? {
        do {
            try engine.checkIsInPlace()
        } catch let error as StoreError where error.code == .moved {
            return error
        } catch {
            // If it can't be read now, it is looked at again later.
        }
        return nil
    }

    private func reportCatchUp() {
        let progress = consumer.currentProgress
        if progress.waiting > Self.leastLag {
            log.info("Catching up", metadata: ["waiting": "\(progress.waiting)", "applied": "\(progress.applied)"])
        }
    }

    /// Nodes whose schema was not changed in the same way can't know that a name was reused.
    private func warn(ofReused names: [ReusedName]) {
        for name in names {
            log.warning(
                "Table or column name reused; change the schema of all nodes in the same way",
                metadata: ["table": "\(name.table)", "name": "\(name)"])
        }
    }

    /// A program that drops a table, or recreates it in a way that can't be followed, may not know that the table was
    /// synced.
    private func warn(ofLost tables: [LostEntity]) {
        for table in tables {
            log.warning(
                "Table no longer synced; restore or attach it to sync it again",
                metadata: ["table": "\(table.name)", "reason": "\(table.reason)"])
        }
    }

    private func reportRebuilt() {
        let rebuilt = engine.session.takeRebuilt()
        guard !rebuilt.isClean else { return }
        log.warning(
            "Table recreated with different rows or values; recording them as changes of this node",
            metadata: rebuilt.metadata)
    }

    private func retain() {
        do {
            let report = try engine.retainHistory(
                age: configuration.historyAge, sizeBytes: configuration.historySizeBytes
            ) { consumer.stopSignal.isStopped }
            if report > 0 { log.info("Old history deleted", metadata: ["rows": "\(report)"]) }
        } catch {
            log.warning("Could not delete old history; will retry", metadata: ["error": "\(error)"])
        }
    }

    private func giveBack(_ housekeeping: inout Housekeeping) {
        do {
            let space = try engine.fileSpace()
            let count = housekeeping.takeFreePages(space)
            guard count > 0 else { return }
            let given = try engine.giveBackFreePages(count) { consumer.stopSignal.isStopped }
            if given > 0 { log.info("Free space given back", metadata: ["bytes": "\(given * space.pageBytes)"]) }
        } catch let error as StoreError where error.code == .busy {
            // Another program needs the store more. It is looked at again later.
            log.debug("Free space not given back: the store is busy")
        } catch {
            log.warning("Could not give back free space; will retry", metadata: ["error": "\(error)"])
        }
    }
}
