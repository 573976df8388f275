import GRDB
import Logging
import MartletStore
import MartletTestSupport

/// Drops the messages that the tests provoke.
let quietLog: Logger = {
    var log = Logger(label: "test")
    log.logLevel = .critical
    return log
}()

extension TemporaryDirectory {
    /// A store with a tracked table of notes.
    func noteStore(_ name: String) throws -> Store {
        let store = try Store.create(path: path("\(name).sqlite"))
        try store.write { try $0.execute(sql: "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)") }
        _ = try store.attach()
        return store
    }
}
