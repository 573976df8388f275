import Dispatch
import Foundation
import MartletSync
import Testing

/// That no change of the wall clock prolongs a wait is up to scripts/lint.sh: no test can set that clock.
@Suite struct WakeSignalTests {
    @Test func aSignalBeforeTheWaitEndsIt() {
        let signal = WakeSignal()
        signal.signal()
        #expect(signal.wait(timeout: .seconds(60)))
        #expect(!signal.wait(timeout: .zero), "a signal ends one wait")
    }

    @Test(arguments: [Duration.milliseconds(30), .milliseconds(1), .zero, .seconds(-1)])
    func aWaitWithoutASignalLastsForItsTimeout(timeout: Duration) {
        let began = ContinuousClock.now
        #expect(!WakeSignal().wait(timeout: timeout))
        #expect(ContinuousClock.now - began >= timeout)
    }

    @Test(arguments: [true, false])
    func aWaitOnAnotherThreadIsEnded(byStopping: Bool) {
        let signal = WakeSignal()
        let (isSignaled, threads) = (DispatchSemaphore(value: 0), DispatchGroup())
        threads.enter()
        Thread {
            if signal.wait(timeout: .seconds(600)) { isSignaled.signal() }
            threads.leave()
        }.start()
        if byStopping { signal.stop() } else { signal.signal() }
        #expect(threads.wait(timeout: .now() + 60) == .success)
        #expect((isSignaled.wait(timeout: .now()) == .success) != byStopping)
    }

    @Test func aStoppedSignalNeverWaits() {
        let signal = WakeSignal()
        signal.stop()
        signal.signal()
        #expect(!signal.wait(timeout: .seconds(600)))
        #expect(signal.isStopped)
    }
}
