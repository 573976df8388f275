import Foundation
import Logging
import MartletStore
import MartletSync

/// What an agent does about a store that goes under the name of another one.
public enum CopyPolicy: String, Sendable, CaseIterable {
    /// Says so, and doesn't start. The default.
    case refuse
    /// Gives the store a name of its own; see ``/MartletSync/SyncEngine/fork(as:)``.
    case fork
}

/// Proof that a store was compared with its messages on the topic, to their end, and that its name is its own.
///
/// Only ``IdentityCheck`` makes one. Whatever sends under the node's name asks for it, so that no way there is, also
/// not one through a stop, leads around the check.
struct VerifiedIdentity {
    /// True where the check gave the store another name.
    let isRenamed: Bool

    fileprivate init(isRenamed: Bool) { self.isRenamed = isRenamed }
}

/// Whether the store is the one that its name belongs to.
struct IdentityCheck {
    let engine: SyncEngine
    let policy: CopyPolicy
    let log: Logger

    /// Compares the store with the machine that it is on.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.copied` where it is a copy, and is not to be forked.
    func checkPlace() throws {
        if let problem = try Self.problem(engine) { try settle(problem) }
        try engine.recordPlace(StorePlace(of: engine.path).text)
    }

    /// For whoever works on a store without an agent.
    static func refuseCopies(_ engine: SyncEngine) throws {
        if let problem = try problem(engine) { throw problem }
    }

    private static func problem(_ engine: SyncEngine) throws -> StoreError? {
        StorePlace.problem(
            at: engine.path, recorded: try engine.recordedPlace(), store: try engine.storeIdentifier())
    }

    /// Compares the store with its messages on the topic, as soon as that can be read.
    ///
    /// - Returns: nil where it was stopped before the comparison was done: then nobody knows whose name it is.
    /// - Throws: as ``checkPlace()``.
    func checkTopic(_ bus: any Bus, _ snapshots: SnapshotTopic, _ stop: WakeSignal) throws -> VerifiedIdentity? {
        var delay = Duration.milliseconds(50)
        while !stop.isStopped {
            do {
                try engine.checkIdentity(on: bus, snapshots: snapshots) { stop.isStopped }
                return VerifiedIdentity(isRenamed: false)
            } catch is CancellationError {
                return nil
            } catch let error as StoreError where error.code == .copied {
                try settle(error)
                return VerifiedIdentity(isRenamed: true)
            } catch let error as StoreError {
                guard error.isRetriable || error.code == .diskFull else { throw error }
                log.warning("Could not read the store; will retry", metadata: ["error": "\(error)"])
            } catch {
                log.warning(
                    "Could not read the topic; will retry. Local changes wait in the store",
                    metadata: ["error": "\(error)"])
            }
            stop.wait(timeout: delay)
            delay = min(.seconds(5), delay * 2)
        }
        return nil
    }

    private func settle(_ problem: StoreError) throws {
        guard policy == .fork else { throw problem }
        let report = try engine.fork()
        log.warning(
            "Store forked: it has a node ID of its own now, as node.whenCopied says",
            metadata: [
                "why": "\(problem.message)", "node": "\(report.node)", "former": "\(report.former)",
                "republished": "\(report.republished)",
            ])
    }
}
