import GRDB
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Waiting until the broker has what was committed.
@Suite struct PublicationTests {
    let lab: Lab
    let a: TestNode

    init() throws {
        lab = try Lab()
        a = try lab.node("a")
    }

    @Test func whatWasCommittedIsAcknowledgedWithItsLastTransaction() throws {
        var nothing = try Publication(a.store)
        #expect(try nothing.isAcknowledged(a.store))
        try a.write("INSERT INTO setting VALUES ('k', 1)")
        try a.foreignWrite("INSERT INTO setting VALUES ('l', 2)")
        var both = try Publication(a.store)
        #expect(try !both.isAcknowledged(a.store))
        // Stamped, and sent, but not known to be there.
        a.publisher.step()
        #expect(try !both.isAcknowledged(a.store))
        // What comes later need not be there.
        try a.publish()
        try a.write("INSERT INTO setting VALUES ('m', 3)")
        #expect(try both.isAcknowledged(a.store))
        var last = try Publication(a.store)
        #expect(try !last.isAcknowledged(a.store))
        try a.publish()
        #expect(try last.isAcknowledged(a.store))
    }

    @Test func whatOtherNodesWroteIsNotWaitedFor() throws {
        let b = try lab.node("b")
        try b.write("INSERT INTO setting VALUES ('k', 1)")
        try b.publish()
        try a.consume()
        var publication = try Publication(a.store)
        #expect(try publication.isAcknowledged(a.store))
    }

    @Test func aStoreWithoutAnAgentWaits() throws {
        let temporary = try TemporaryStore("CREATE TABLE t(id INTEGER PRIMARY KEY)")
        var nothing = try Publication(temporary.store)
        #expect(try nothing.isAcknowledged(temporary.store))
        try temporary.store.write { try $0.execute(sql: "INSERT INTO t VALUES (1)") }
        var publication = try Publication(temporary.store)
        #expect(try !publication.isAcknowledged(temporary.store))
    }
}
