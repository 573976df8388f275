import Glibc

/// The path of a file without symbolic links. SQLite keeps the write-ahead log beside the file itself, and so does
/// everything else that belongs to a store.
enum RealPath {
    /// Returns the path itself if there is no such file.
    static func of(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}
