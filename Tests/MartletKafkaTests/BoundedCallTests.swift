import Dispatch
import MartletKafka
import Testing

@Suite struct BoundedCallTests {
    /// Found by `make torture`: a client of librdkafka that never ended held up its node for good.
    @Test func p07ACallThatNeverEndsHoldsNobodyUp() {
        let never = DispatchSemaphore(value: 0)
        #expect(!BoundedCall.run(within: .milliseconds(10)) { never.wait() })
        never.signal()
    }

    @Test func aCallThatEndsIsWaitedFor() {
        let done = DispatchSemaphore(value: 0)
        #expect(BoundedCall.run(within: .seconds(60)) { done.signal() })
        #expect(done.wait(timeout: .now()) == .success)
    }
}
