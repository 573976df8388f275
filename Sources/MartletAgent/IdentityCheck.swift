import Foundation
import Logging
import MartletStore
import MartletSync

/// The reaction of an agent to a store that is a copy of another one, and has the same node ID.
public enum CopyPolicy: String, Sendable, CaseIterable {
    /// The agent reports it, and doesn't start. The default.
    case refuse
    /// The agent gives the store a node ID of its own; see ``/MartletEngine/SyncEngine/fork(as:)``.
    case fork
}

/// Proof that a store was compared with its messages on the topic, to their end, and that no other store uses its node
/// ID.
///
/// Only ``IdentityCheck`` makes one. Everything that sends or enqueues under the node's ID requires it, so that no
/// path leads around the check, even if the agent is stopped meanwhile.
struct VerifiedIdentity: Sendable {
    /// True if the check gave the store another node ID.
    let isRenamed: Bool

    fileprivate init(isRenamed: Bool) { self.isRenamed = isRenamed }
}

/// Checks whether a store is the one that its node ID belongs to.
struct IdentityCheck {
    let engine: SyncEngine
    let policy: CopyPolicy
    let log: Logger

    /// Compares the store with the machine that it is on.
    ///
    /// - Throws: ``/MartletCore/StoreError`` with code `.copied` if it is a copy, and the policy is not to fork it.
    func checkPlace() throws {
        if let problem = try Self.problem(engine) { try settle(problem) }
        try RecordedPlace(engine.session).record(StorePlace(of: engine.path).text)
    }

    /// The same check for work on a store without an agent. Never forks, and records nothing.
    static func refuseCopies(_ engine: SyncEngine) throws {
        if let problem = try problem(engine) { throw problem }
    }

    private static func problem(_ engine: SyncEngine) throws -> StoreError? {
        StorePlace.problem(
            at: engine.path, recorded: try RecordedPlace(engine.session).text(),
            store: try RecordedPlace(engine.session).storeIdentifier())
    }

    /// Compares the store with its messages on the topic, as soon as the topic can be read.
    ///
    /// - Returns: nil if it was stopped before the comparison was complete. The node ID is then unverified.
    /// - Throws: the same errors as ``checkPlace()``.
    func checkTopic(_ bus: any Bus, _ snapshots: SnapshotTopic, _ stop: WakeSignal) throws -> VerifiedIdentity? {
        var backoff = Backoff()
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
                guard error.isTransient else { throw error }
                log.warning("Could not read the store; will retry", metadata: ["error": "\(error)"])
            } catch {
                log.warning(
                    "Could not read the topic; will retry. Local changes wait in the store",
                    metadata: ["error": "\(error)"])
            }
            stop.wait(timeout: backoff.fail())
            // The broker may stay away for weeks.
            try engine.checkIsInPlace()
        }
        return nil
    }

    private func settle(_ problem: StoreError) throws {
        guard policy == .fork else { throw problem }
        let report = try engine.fork()
        log.warning(
            "Store forked: it has a new node ID, because node.whenCopied is fork",
            metadata: [
                "why": "\(problem.message)", "node": "\(report.node)", "former": "\(report.former)",
                "republished": "\(report.republished)",
            ])
    }
}
