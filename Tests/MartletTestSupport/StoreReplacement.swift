import Foundation
import MartletStore

/// What happens to a store's file when somebody restores a backup, or moves it, while programs have it open.
package enum StoreReplacement {
    /// Renames another store over the file, or renames the file.
    package static func moveAway(_ path: String, replacing isReplaced: Bool) throws {
        let other = path + ".other"
        if isReplaced { try Store.create(path: other).close() }
        guard rename(isReplaced ? other : path, isReplaced ? path : other) == 0 else {
            throw TestFailure("\(path) can't be renamed: \(String(cString: strerror(errno)))")
        }
    }
}

extension TemporaryStore {
    package func moveAway(replacing isReplaced: Bool) throws {
        try StoreReplacement.moveAway(path, replacing: isReplaced)
    }
}
