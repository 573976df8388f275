import Dispatch
import MartletKafka
import Testing

@Suite struct BoundedCallTests {
    /// Found by `make torture`: a librdkafka client that never ended blocked its node forever.
    @Test func p07ACallThatNeverEndsBlocksNoCaller() {
        let never = DispatchSemaphore(value: 0)
        #expect(!BoundedCall.run(within: .milliseconds(10)) { never.wait() })
        never.signal()
    }

    @Test func theCallerWaitsForACallThatEnds() {
        let done = DispatchSemaphore(value: 0)
        #expect(BoundedCall.run(within: .seconds(60)) { done.signal() })
        #expect(done.wait(timeout: .now()) == .success)
    }
}
