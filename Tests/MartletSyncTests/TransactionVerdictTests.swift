import Foundation
import MartletSync
import Testing

/// Which transactions of other nodes may be merged, decided without a store.
@Suite struct TransactionVerdictTests {
    private let node = NodeID(UUID())
    private let time = HybridTime(milliseconds: 1_000_000)

    private func transaction(_ change: (inout WireTransaction) -> Void = { _ in }) -> DecodedTransaction {
        var wire = WireTransaction()
        wire.format = WireFormat.version
        wire.origin = Data(node.bytes)
        wire.sequence = 7
        wire.hlc = time.rawValue
        change(&wire)
        return DecodedTransaction(wire)
    }

    private func judge(
        _ transaction: DecodedTransaction, _ envelope: WireEnvelope? = nil, byteCount: Int = 100,
        maxRowBytes: Int = 1000, watermark: HybridTime = .zero
    ) throws -> TransactionVerdict {
        try TransactionVerdict.judge(
            transaction, envelope ?? WireEnvelope(origin: node, sequence: 7), byteCount: byteCount,
            maxRowBytes: maxRowBytes, watermark: watermark)
    }

    /// A change whose encoding has more than 500 bytes, and less than 1000.
    private func large(_ wire: inout WireTransaction) {
        var change = WireChange()
        change.entity = String(repeating: "e", count: 500)
        wire.changes = [change]
    }

    @Test func aTransactionThatFitsItsHeadersIsAcceptable() throws {
        #expect(try judge(transaction()) == .acceptable)
    }

    @Test func headersOfAnotherTransactionRefuseIt() throws {
        let refused = TransactionVerdict.refused(
            WireError("The headers and the payload name different transactions."))
        #expect(try judge(transaction(), WireEnvelope(origin: NodeID(UUID()), sequence: 7)) == refused)
        #expect(try judge(transaction(), WireEnvelope(origin: node, sequence: 8)) == refused)
    }

    @Test func aTransactionUpToTheWatermarkIsLate() throws {
        let before = HybridTime(rawValue: time.rawValue - 1)
        #expect(try judge(transaction(), watermark: before) == .acceptable)
        #expect(try judge(transaction(), watermark: time) == .late)
        #expect(try judge(transaction(), watermark: HybridTime(rawValue: time.rawValue + 1)) == .late)
    }

    @Test func aChangeBeyondTheLimitRefusesTheTransaction() throws {
        guard case .refused(let error) = try judge(transaction(large), byteCount: 600, maxRowBytes: 500) else {
            Issue.record("The transaction was not refused.")
            return
        }
        #expect(error.description.contains("security.limits.maxRowBytes"))
        #expect(try judge(transaction(large), byteCount: 2000, maxRowBytes: 1000) == .acceptable)
    }

    /// Its author need not hear of its age: republished, it would be as large.
    @Test func aLateTransactionThatIsTooLargeIsRefusedForItsSize() throws {
        guard case .refused = try judge(transaction(large), byteCount: 600, maxRowBytes: 500, watermark: time) else {
            Issue.record("The transaction was not refused.")
            return
        }
    }

    @Test(arguments: [[0], [7], [8], [3, 9]] as [[UInt64]]) func aTransactionReplacesOnlyEarlierOnes(
        _ replaced: [UInt64]
    ) throws {
        let refused = TransactionVerdict.refused(WireError("It replaces a transaction that comes after it."))
        #expect(try judge(transaction { $0.restates = replaced }) == refused)
        #expect(try judge(transaction { $0.restates = [1, 6] }) == .acceptable)
    }
}
