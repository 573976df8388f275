import Foundation
import MartletStore
import Testing

/// How far a reader that follows the history has got, without any history.
@Suite struct TailProgressTests {
    private let store = UUID()

    private func token(_ transaction: Int64) -> HistoryToken { HistoryToken(store: store, transaction: transaction) }

    @Test func nothingToHandOutNeedsNoAcknowledgement() {
        var progress = TailProgress(at: token(3))
        #expect(progress.finish(at: token(8)) == token(8))
        #expect(progress.isSettled && progress.end == token(8))
    }

    @Test func theCursorWaitsForTheAcknowledgement() throws {
        var progress = TailProgress(at: token(0))
        progress.handOut(through: token(4))
        #expect(progress.finish(at: token(5)) == nil)
        #expect(try progress.acknowledge(token(2)) == token(2))
        #expect(!progress.isSettled)
        // Nothing between the last transaction and the end of the page matched.
        #expect(try progress.acknowledge(token(4)) == token(5))
        #expect(progress.isSettled)
    }

    @Test func whatDoesNotMatchWaitsForWhatIsBeforeIt() throws {
        var progress = TailProgress(at: token(0))
        progress.handOut(through: token(2))
        #expect(progress.finish(at: token(3)) == nil)
        #expect(progress.finish(at: token(9)) == nil)
        #expect(try progress.acknowledge(token(2)) == token(9))
    }

    /// The reader is faster than the thread that hands out.
    @Test func anAcknowledgementMayArriveBeforeThePageIsHandedOut() throws {
        var progress = TailProgress(at: token(0))
        progress.handOut(through: token(4))
        #expect(try progress.acknowledge(token(4)) == token(4))
        #expect(progress.finish(at: token(5)) == token(5))
    }

    @Test func onlyWhatWasHandedOutCanBeAcknowledged() throws {
        var progress = TailProgress(at: token(7))
        #expect(throws: StoreError.self) { try progress.acknowledge(token(7)) }
        progress.handOut(through: token(8))
        #expect(throws: StoreError.self) { try progress.acknowledge(token(9)) }
        #expect(throws: StoreError.self) { try progress.acknowledge(HistoryToken(store: UUID(), transaction: 8)) }
        #expect(try progress.acknowledge(token(8)) == token(8))
        // An acknowledgement that is repeated does no harm.
        #expect(try progress.acknowledge(token(8)) == token(8))
    }
}
