import Foundation
import MartletKafka
import Testing

@Suite struct LoopbackSocketTests {
    /// If the listener ended then, all later clients would wait for an answer that never comes.
    @Test(arguments: [EMFILE, ENFILE, ENOBUFS, ENOMEM])
    func aListenerOutlastsTooManyConnections(_ code: Int32) {
        #expect(LoopbackSocket.refusal(code) == .pause)
    }

    @Test func aListenerEndsWhenItIsShutDown() {
        #expect(LoopbackSocket.refusal(EINVAL) == .end)
        #expect(LoopbackSocket.refusal(ECONNABORTED) == .retry)
    }
}
