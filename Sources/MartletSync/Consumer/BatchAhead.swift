import Dispatch
import Synchronization

/// Messages that are decoded on another thread while those before them are applied.
final class BatchAhead: Sendable {
    private struct Content {
        var batch: ConsumerBatch
        var decoded: [DecodedMessage] = []
    }

    private let done = DispatchGroup()
    private let content: Mutex<Content>

    /// - Parameter spent: those that were applied last. They are thousands of objects to let go of, which is done there
    ///   too.
    init(_ batch: ConsumerBatch, engine: SyncEngine, topic: String, after spent: BatchAhead?) {
        content = Mutex(Content(batch: batch))
        DispatchQueue.global().async(group: done) { [self] in
            spent?.letGo()
            let decoded = engine.decode(batch.messages, topic: topic, isAhead: true)
            content.withLock { $0.decoded = decoded }
        }
    }

    /// Waits until they are decoded.
    func result() -> (ConsumerBatch, [DecodedMessage]) {
        done.wait()
        return content.withLock { ($0.batch, $0.decoded) }
    }

    private func letGo() {
        content.withLock { $0 = Content(batch: ConsumerBatch()) }
    }
}
