import GRDB
import MartletStore
import MartletTestSupport
import Testing

/// A user's trigger that is newer than the capture triggers, and writes before Martlet looks at the schema again.
/// SQLite runs the newest trigger first, so its writes are in the log ahead of the change that fired it.
@Suite struct LateTriggerTests {
    private static let trigger = "CREATE TRIGGER late AFTER"

    /// Each case: a trigger, a statement that fires it, the rows afterwards, and the last change of the history.
    @Test(
        arguments: [
            [
                "INSERT ON item BEGIN UPDATE item SET n = 99 WHERE id = NEW.id; END", "INSERT INTO item VALUES (2, 2)",
                "1|1,2|99", "update item#2 n=99",
            ],
            [
                "UPDATE ON item WHEN NEW.n < 99 BEGIN UPDATE item SET n = 99 WHERE id = NEW.id; END",
                "UPDATE item SET n = 5", "1|99", "update item#1 n=99",
            ],
            [
                "INSERT ON ITEM BEGIN DELETE FROM item WHERE id = NEW.id; END", "INSERT INTO item VALUES (2, 2)", "1|1",
                "delete item#2",
            ],
            [
                "DELETE ON Item BEGIN INSERT INTO item VALUES (OLD.id, 7); END", "DELETE FROM item", "1|7",
                "insert item#1 n=7",
            ],
            [
                "INSERT ON item BEGIN UPDATE item SET id = 102 WHERE id = NEW.id; END",
                "INSERT INTO item VALUES (2, 2)", "1|1,102|2", "insert item#102 n=2",
            ],
        ], ForeignProgram.allCases)
    func p193theWritesOfALateTriggerAreTheLastOnesInTheHistory(_ texts: [String], _ program: ForeignProgram) throws {
        let temporary = try TemporaryStore(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, n INT); INSERT INTO item VALUES (1, 1)")
        try temporary.run(program, "\(Self.trigger) \(texts[0]); \(texts[1]);")
        #expect(try temporary.lines("SELECT id, n FROM item ORDER BY id").joined(separator: ",") == texts[2])
        #expect(try temporary.changes().last == texts[3])
        #expect(try temporary.store.audit().isClean)
    }

    /// The capture triggers are created again, so that they run first from then on.
    @Test func p193laterWritesOfSuchATriggerAreLoggedInOrder() throws {
        let temporary = try TemporaryStore("CREATE TABLE item(id INTEGER PRIMARY KEY, n INT)")
        try temporary.raw("\(Self.trigger) INSERT ON ITEM BEGIN UPDATE item SET n = 99 WHERE id = NEW.id; END")
        #expect(try temporary.changes().isEmpty)
        try temporary.raw("INSERT INTO item VALUES (1, 1)")
        #expect(try temporary.changes() == ["insert item#1 n=1", "update item#1 n=99"])
    }
}
