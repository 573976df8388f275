import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// What is computed from a transaction before the store is read.
@Suite struct DecodedTransactionTests {
    private let lab: Lab
    private let a: TestNode
    private let b: TestNode

    init() throws {
        lab = try Lab()
        a = try lab.node("a")
        b = try lab.node("b")
        try a.write("INSERT INTO setting VALUES ('k', 1), ('l', 2), ('m', 3)")
        try a.publish()
    }

    private func changing(_ change: (inout WireTransaction) -> Void) throws -> IncomingMessage {
        var message = try #require(try lab.messages().first)
        var transaction = try WireFormat.decode(message.payload)
        change(&transaction)
        message.payload = try WireFormat.encode(transaction, as: .protobuf)
        return message
    }

    /// The first change is current, and the last is from the day after tomorrow: none of the transaction is applied.
    @Test func aFutureClockInALaterChangeHoldsBackTheTransaction() throws {
        let message = try changing { $0.changes[2].clockStep = UInt64(48 * 3_600_000) << 16 }
        #expect(try b.receive([message]).deferred == 1)
        #expect(try b.rows("SELECT key FROM setting") == [])
        #expect(try b.pendingMessages().map(\.reason) == [.futureClock])
    }

    /// The sum of the clock steps overflows to 0, and would be a time in the past.
    @Test func transactionsWithOverflowingClocksAreQuarantined() throws {
        let message = try changing { $0.changes[1].clockStep = .max }
        #expect(try b.receive([message]).quarantined == 1)
        #expect(try b.rows("SELECT key FROM setting") == [])
        #expect(try b.store.quarantined().map(\.reason) == ["The clocks of the changes overflow."])
    }

    /// A kind of value from a newer version: the change is pending, because this node lacks its column, too.
    @Test func aValueOfUnknownKindInAnUnknownColumnWaitsForTheColumn() throws {
        let message = try changing {
            $0.changes[1].columns[1].name = "worth"
            $0.changes[1].columns[1].value = WireValue()
        }
        let report = try b.receive([message])
        #expect(report.applied == 1 && report.quarantined == 0)
        #expect(try b.rows("SELECT key FROM setting ORDER BY key") == ["k", "m"])
        #expect(try b.pendingMessages().map(\.text) == ["unknownSchema: column setting.worth"])
    }

    @Test func aValueOfUnknownKindQuarantinesTheTransaction() throws {
        let message = try changing { $0.changes[1].columns[1].value = WireValue() }
        #expect(try b.receive([message]).quarantined == 1)
        #expect(try b.rows("SELECT key FROM setting") == [])
        #expect(try b.store.quarantined().map(\.reason) == ["A value has no kind."])
    }

    /// One node has renamed a column, and another has a new column of that name: the first node's column is not the
    /// second node's.
    @Test func columnsWithOneNameAndDifferentFormerNamesAreDistinct() throws {
        let renamed = try changing {
            $0.changes.removeLast(2)
            $0.changes[0].columns[1].name = "worth"
            $0.changes[0].columns[1].formerNames = ["value"]
        }
        var new = try changing {
            $0.sequence = 2
            $0.changes.removeFirst(2)
            $0.changes[0].columns[1].name = "worth"
        }
        new.headers = new.headers.map { $0.name == WireHeader.sequence ? MessageHeader($0.name, "2") : $0 }
        try b.receive([renamed, new])
        #expect(try b.rows("SELECT key, value FROM setting") == ["k|1"])
        #expect(try b.pendingMessages().map(\.text) == ["unknownSchema: column setting.worth"])
    }
}
