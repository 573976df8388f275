import MartletSync
import MartletTestSupport
import Testing

/// Columns that are declared as ANY: a STRICT table stores all values in them unchanged, and any other table takes the
/// type for NUMERIC.
@Suite struct AnyColumnTests {
    /// Without affinity, 2 and '2' differ.
    @Test(arguments: [true, false]) func aConditionReadsTheColumnAsItsTableDoes(isStrict: Bool) throws {
        let options = isStrict ? " STRICT" : ""
        let lab = try SnapshotLab("CREATE TABLE item(key TEXT PRIMARY KEY NOT NULL, v ANY)\(options)")
        var filters = SyncFilters()
        filters.publish = ["item": "v = '2'"]
        let a = try lab.node("a") { [filters] in $0.filters = filters }
        let b = try lab.node("b")
        try a.write("INSERT INTO item VALUES ('number', 2), ('text', '2')")
        try exchange([a, b])
        #expect(try b.rows("SELECT key FROM item ORDER BY key") == (isStrict ? ["text"] : ["number", "text"]))
    }
}
