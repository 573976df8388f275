import Dispatch
import Foundation
import MartletKafka
import MartletSync
import MartletTestSupport
import Synchronization
import Testing

@Suite struct WatermarkTests {
    @Test func watermarksFailOnABrokerThatIsGone() throws {
        let broker = try EmbeddedBroker(topics: ["martlet": 1])
        let consumer = try KafkaBus(.test(broker)).makeConsumer()
        #expect(try consumer.watermarks(partition: 0, timeout: BusContract.deadline) == Watermarks(low: 0, high: 0))
        try broker.setDown(true)
        let failure = Mutex<BusError?>(nil)
        let ended = DispatchSemaphore(value: 0)
        // On a thread of its own: a call that never returns must not block the other tests.
        Thread {
            do {
                _ = try consumer.watermarks(partition: 0, timeout: .milliseconds(500))
            } catch {
                failure.withLock { $0 = error as? BusError }
            }
            ended.signal()
        }.start()
        try #require(ended.wait(timeout: .now() + 30) == .success)
        #expect(failure.withLock { $0 } != nil)
        consumer.close()
    }
}
