package import Foundation
import MartletStore

/// The place of a store: the machine, the path, and the file. Recorded in the store, and compared at each start.
///
/// One of the three may change without a copy: a container is recreated, a file is moved on its disk, or rewritten in
/// its place. If two have changed, the store is a copy, unless it was moved on one machine: then there is no such store
/// at the former path any more. The topic reveals what this comparison can't see (a cloned machine, a backup restored
/// in place).
package struct StorePlace: Codable, Equatable {
    /// The machine's identifier. Empty if it has none; then the machine is not compared.
    var machine: String
    var path: String
    var inode: UInt64

    package init(machine: String, path: String, inode: UInt64) {
        self.machine = machine
        self.path = path
        self.inode = inode
    }

    /// Finds the place of the file at the path.
    init(of path: String) {
        machine = Self.machineID
        self.path = URL(fileURLWithPath: path).resolvingSymlinksInPath().standardizedFileURL.path
        var status = stat()
        inode = stat(self.path, &status) == 0 ? UInt64(status.st_ino) : 0
    }

    init?(_ text: String) {
        guard let place = try? JSONDecoder().decode(StorePlace.self, from: Data(text.utf8)) else { return nil }
        self = place
    }

    package var text: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    private static var machineID: String {
        for file in ["/etc/machine-id", "/var/lib/dbus/machine-id"] {
            if let text = try? String(contentsOfFile: file, encoding: .utf8) {
                return text.trimmingCharacters(in: .whitespacesAndNewlines)
            }
        }
        return ""
    }

    /// Returns an error if the store at a path is a copy.
    ///
    /// - Parameter recorded: the store's place when an agent last ran on it.
    static func problem(at path: String, recorded: String?, store identifier: UUID?) -> StoreError? {
        guard let former = recorded.flatMap({ StorePlace($0) }) else { return nil }
        let here = StorePlace(of: path)
        return here.isCopy(of: former, store: identifier) ? here.copied(from: former) : nil
    }

    /// Returns true if this is the place of a copy of the store that was at `former`.
    package func isCopy(of former: StorePlace, store identifier: UUID?) -> Bool {
        let isOtherMachine = !machine.isEmpty && !former.machine.isEmpty && machine != former.machine
        let differences = [isOtherMachine, path != former.path, inode != former.inode].count { $0 }
        guard differences >= 2 else { return false }
        return isOtherMachine || Self.holds(former.path, identifier)
    }

    private static func holds(_ path: String, _ identifier: UUID?) -> Bool {
        guard FileManager.default.fileExists(atPath: path) else { return false }
        var configuration = StoreConfiguration()
        configuration.isReadOnly = true
        // A store that can't be read may be the original.
        guard let store = try? Store(path: path, configuration: configuration) else { return true }
        defer { try? store.close() }
        return store.identifier == identifier
    }

    func copied(from former: StorePlace) -> StoreError {
        let origin =
            former.machine == machine
            ? "it last ran as \(former.path), which still exists" : "it last ran on another machine"
        return StoreError(
            .copied, "\(path) is a copy of a store that has synced: \(origin). Nothing was changed.",
            hint:
                "Run `martlet fork \(ShellWord.quoted(path))`, even if the other store is gone for good: the store "
                + "gets a node ID of its own, keeps its rows and its history, and publishes the changes that only it "
                + "has. "
                + "Set `node.whenCopied: fork` in the configuration to do that automatically.")
    }
}
