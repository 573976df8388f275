import Foundation
package import GRDB
import GRDBSQLite

extension Database {
    /// Returns whether the path with which this connection was opened now leads to another file, or to none. Then
    /// nobody who opens the path sees what is written here, and nobody here sees what others write there.
    ///
    /// False for a database in memory.
    package func hasMoved(from path: String) -> Bool {
        var moved: CInt = 0
        let code = sqlite3_file_control(sqliteConnection, "main", SQLITE_FCNTL_HAS_MOVED, &moved)
        guard code == SQLITE_OK else { return false }
        // SQLite knows the file without symbolic links, and a link may lead elsewhere by now.
        guard moved == 0, let name = sqlite3_db_filename(sqliteConnection, "main"), name.pointee != 0 else {
            return moved != 0
        }
        var (there, opened) = (stat(), stat())
        guard stat(name, &opened) == 0 else { return true }
        return stat(path, &there) != 0 || there.st_ino != opened.st_ino || there.st_dev != opened.st_dev
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.moved` if ``hasMoved(from:)`` is true.
    package func checkIsInPlace(_ path: String) throws {
        guard hasMoved(from: path) else { return }
        throw StoreError(
            .moved,
            access(path, F_OK) == 0
                ? "\(path) is not the file that was opened: the store was moved or replaced."
                : "\(path) was moved or deleted while it was open.",
            hint: "Start again once the store is in its place. Next time, stop all programs that use the store first, "
                + "and move the files that end in -wal and -shm with it, or SQLite can damage it.")
    }
}
