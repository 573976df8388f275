import CMartletSystem
import Foundation
import MartletStore
import MartletSync

/// Reads and writes files with secrets, which only their owner can read.
package enum SecretFile {
    /// A key ring with thousands of keys is smaller.
    private static let maxBytes = 1 << 20

    /// Identifies a file and its state. Differs whenever the contents may have changed.
    package struct Version: Equatable {
        fileprivate var device: UInt64
        fileprivate var inode: UInt64
        fileprivate var size: Int64
        fileprivate var modified: Int64
        fileprivate var changed: Int64

        fileprivate init(_ facts: stat) {
            device = UInt64(facts.st_dev)
            inode = UInt64(facts.st_ino)
            size = Int64(facts.st_size)
            modified = martlet_nanoseconds(facts.st_mtim)
            changed = martlet_nanoseconds(facts.st_ctim)
        }

        /// Returns true if another write could still leave the same times: file systems count in steps of some
        /// milliseconds.
        func isFresh(at nanoseconds: Int64) -> Bool { nanoseconds - max(modified, changed) < 2_000_000_000 }
    }

    /// Nanoseconds since 1970.
    static var now: Int64 { WallClock.milliseconds * 1_000_000 }

    /// Returns nil if there is no such file.
    static func version(_ path: String) -> Version? {
        var facts = stat()
        return stat(path, &facts) == 0 ? Version(facts) : nil
    }

    /// False also if it can't be told whether there is such a file.
    static func isMissing(_ path: String) -> Bool {
        var facts = stat()
        return stat(path, &facts) != 0 && errno == ENOENT
    }

    /// - Throws: ``/MartletCore/StoreError`` if the file can't be read, or others can read it too. The error never
    ///   shows the contents.
    static func read(_ path: String, as what: String) throws(StoreError) -> (text: String, version: Version) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw StoreError(
                .invalidArgument, "The \(what) \(path) can't be read: \(String(cString: strerror(errno))).",
                hint: "Make sure that it exists and belongs to the user that the agent runs as.")
        }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
            throw StoreError(.invalidArgument, "The \(what) \(path) is not a file.")
        }
        guard facts.st_mode & 0o077 == 0 else {
            throw StoreError(
                .invalidArgument,
                "The \(what) \(path) has mode \(FileMode.text(facts.st_mode)): other users can access it.",
                hint: "Run: chmod 600 \(ShellWord.quoted(path)). If somebody else may have read it, create a new key.")
        }
        guard facts.st_size <= maxBytes else {
            throw StoreError(
                .invalidArgument, "The \(what) \(path) has \(facts.st_size) bytes, more than such a file can have.")
        }
        let bytes: Data
        do {
            bytes = try FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).readToEnd() ?? Data()
        } catch {
            throw StoreError(.invalidArgument, "The \(what) \(path) can't be read: \(error.localizedDescription)")
        }
        guard let text = String(data: bytes, encoding: .utf8) else {
            throw StoreError(.invalidArgument, "The \(what) \(path) is not text.")
        }
        return (text, Version(facts))
    }

    /// Replaces the contents of the file atomically. Only its owner can read it, and that stays the same: root may add
    /// a key to a ring that the agent's user reads. A symbolic link stays one.
    ///
    /// - Parameter replaces: false to fail if the file exists.
    static func write(_ text: String, to path: String, replaces: Bool) throws(StoreError) {
        let path = replaces ? target(of: path) : path
        func failed(_ what: String) -> StoreError {
            StoreError(.readOnly, "\(path) can't be written: \(what).", hint: "Nothing was changed.")
        }
        let new = "\(path).\(getpid()).new"
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failed(String(cString: strerror(errno))) }
        defer { unlink(new) }
        let bytes = Array(text.utf8)
        let isWritten = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) } == bytes.count
        let isSynced = fsync(descriptor) == 0
        var former = stat()
        let keepsOwner =
            !replaces || stat(path, &former) != 0 || former.st_uid == geteuid()
            || fchown(descriptor, former.st_uid, former.st_gid) == 0
        close(descriptor)
        guard isWritten, isSynced else { throw failed("the disk is full or failing") }
        guard keepsOwner else { throw failed("it belongs to another user, who could not read it afterwards") }
        if replaces {
            guard rename(new, path) == 0 else { throw failed(String(cString: strerror(errno))) }
        } else {
            guard link(new, path) == 0 else { throw failed(String(cString: strerror(errno))) }
        }
        syncFolder(of: path)
    }

    /// Makes the name of a file survive a loss of power: messages may soon be encrypted with a key that is only there.
    /// Best effort, since some file systems can't do it.
    private static func syncFolder(of path: String) {
        let folder = open(URL(fileURLWithPath: path).deletingLastPathComponent().path, O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { return }
        fsync(folder)
        close(folder)
    }
}

extension SecretFile {
    /// Returns the path that a symbolic link leads to, or the path itself.
    private static func target(of path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}

/// The permissions of a file, for people.
enum FileMode {
    static func text(_ mode: mode_t) -> String {
        let digits = String(mode & 0o777, radix: 8)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }

    /// Describes which of the file and those beside it can be read or written by users who are neither their owner nor
    /// in their group. Nil: none.
    static func exposed(_ path: String, beside suffixes: [String]) -> String? {
        let found = ([""] + suffixes).compactMap { suffix -> String? in
            guard let mode = of(path + suffix), mode & 0o006 != 0 else { return nil }
            let what = mode & 0o002 != 0 ? "write" : "read"
            return "every user of this machine can \(what) \(path + suffix) (mode \(text(mode)))"
        }
        return found.isEmpty ? nil : found.joined(separator: "; ")
    }

    /// Returns nil if there is no such file.
    static func of(_ path: String) -> mode_t? {
        var facts = stat()
        return stat(path, &facts) == 0 ? facts.st_mode & 0o777 : nil
    }
}
