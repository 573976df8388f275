package import GRDB
package import MartletStore

/// Returns the statement, compiled at first use. After that, not even its text is put together, which is made from
/// names.
package func kept(_ statement: inout PreparedStatement?, _ db: Database, _ sql: @autoclosure () -> String) throws
    -> PreparedStatement
{
    if let statement { return statement }
    let made = try PreparedStatement(db, sql())
    statement = made
    return made
}
