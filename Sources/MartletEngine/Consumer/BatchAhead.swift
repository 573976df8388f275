import Dispatch
import MartletBus
import MartletWire
import Synchronization

/// A batch that is decoded on another thread while the batch before it is applied.
final class BatchAhead: Sendable {
    private struct Content {
        var batch: ConsumerBatch
        var decoded: [DecodedMessage] = []
    }

    private let done = DispatchGroup()
    private let content: Mutex<Content>

    /// - Parameter spent: a batch that was applied already. It consists of thousands of objects, which are released on
    ///   the same thread.
    init(_ batch: ConsumerBatch, applier: BatchApplier, after spent: BatchAhead?) {
        content = Mutex(Content(batch: batch))
        DispatchQueue.global().async(group: done) { [self] in
            spent?.letGo()
            let decoded = applier.decode(batch.messages, isAhead: true)
            content.withLock { $0.decoded = decoded }
        }
    }

    /// Waits until the batch is decoded.
    func result() -> (ConsumerBatch, [DecodedMessage]) {
        done.wait()
        return content.withLock { ($0.batch, $0.decoded) }
    }

    private func letGo() {
        content.withLock { $0 = Content(batch: ConsumerBatch()) }
    }
}
