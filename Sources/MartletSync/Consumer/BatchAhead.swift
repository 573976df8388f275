import Dispatch
import Synchronization

/// Messages that are decoded on another thread while those before them are applied.
final class BatchAhead: Sendable {
    let batch: ConsumerBatch
    private let done = DispatchGroup()
    private let result = Mutex<[SyncEngine.Decoded]>([])

    init(_ batch: ConsumerBatch, engine: SyncEngine, topic: String) {
        self.batch = batch
        DispatchQueue.global().async(group: done) { [self] in
            let decoded = engine.decode(batch.messages, topic: topic)
            result.withLock { $0 = decoded }
        }
    }

    /// Waits until they are.
    func decoded() -> [SyncEngine.Decoded] {
        done.wait()
        return result.withLock { $0 }
    }
}
