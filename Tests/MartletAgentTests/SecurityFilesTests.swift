import Foundation
import GRDB
import MartletAgent
import MartletStore
import MartletSync
import MartletTestSupport
import Testing

/// Key files, and the modes of files that Martlet creates.
@Suite struct SecurityFilesTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.posixPermissions] as? Int)
    }

    private func set(_ mode: Int, _ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    private func message(_ body: () throws -> some Any) -> String {
        do {
            _ = try body()
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test(arguments: [0o640, 0o604, 0o660, 0o610, 0o644]) func loadingRefusesAKeyRingThatOthersCanRead(_ bits: Int)
        throws
    {
        let path = directory.path("ring")
        _ = try KeyFiles.addKey("k1", makesCurrent: true, to: path)
        #expect(try mode(path) == 0o600)
        _ = try KeyRingFile(path)
        try set(bits, path)
        let text = try String(contentsOfFile: path, encoding: .utf8).split(separator: " ")[1]
        let why = message { try KeyRingFile(path) }
        #expect(why.contains("mode 0\(String(bits, radix: 8))") && why.contains("chmod 600"))
        #expect(!why.contains(text))
        var configuration = AgentSecurity()
        configuration.keyRingFile = path
        #expect(SecurityDoctor.examine(configuration).map(\.level) == [.problem])
    }

    /// With another owner, the agent could not read the ring any more.
    @Test(.enabled(if: geteuid() == 0, "only root can write files of other users"))
    func aKeyRingStaysItsOwners() throws {
        let path = directory.path("ring")
        _ = try KeyFiles.addKey("k1", makesCurrent: true, to: path)
        try #require(chown(path, 12_345, 23_456) == 0)
        _ = try KeyFiles.addKey("k2", makesCurrent: true, to: path)
        var facts = stat()
        try #require(stat(path, &facts) == 0)
        #expect(facts.st_uid == 12_345 && facts.st_gid == 23_456)
        #expect(facts.st_mode & 0o777 == 0o600)
    }

    /// `martlet snapshot load`, say, is run as root before the first start of the agent.
    @Test(.enabled(if: geteuid() == 0, "only root can write files of other users"))
    func theLockOfAStoreBelongsToTheStoresOwner() throws {
        let path = directory.path("a.sqlite")
        try Store.create(path: path).close()
        try #require(chown(path, 12_345, 23_456) == 0)
        let lock = try StoreLock(store: path)
        var facts = stat()
        try #require(stat(path + ".lock", &facts) == 0)
        #expect(facts.st_uid == 12_345 && facts.st_gid == 23_456)
        withExtendedLifetime(lock) {}
    }

    /// Root may run a command on a store whose folder belongs to somebody else.
    @Test(arguments: [true, false]) func aLinkInPlaceOfTheLockFileIsNotFollowed(isSymbolic: Bool) throws {
        let (path, other) = (directory.path("a.sqlite"), directory.path("other"))
        try Store.create(path: path).close()
        try Data("precious".utf8).write(to: URL(fileURLWithPath: other))
        try set(0o640, other)
        if isSymbolic {
            try FileManager.default.createSymbolicLink(atPath: path + ".lock", withDestinationPath: other)
        } else {
            try FileManager.default.linkItem(atPath: other, toPath: path + ".lock")
        }
        #expect(message { try StoreLock(store: path) }.contains("remove it"))
        #expect(try String(contentsOfFile: other, encoding: .utf8) == "precious")
        #expect(try mode(other) == 0o640)
    }

    @Test func aLinkToAKeyRingStaysALink() throws {
        let (path, link) = (directory.path("ring"), directory.path("link"))
        _ = try KeyFiles.addKey("k1", makesCurrent: true, to: path)
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        _ = try KeyFiles.addKey("k2", makesCurrent: false, to: link)
        #expect(try KeyFiles.ring(path).ids == ["k1", "k2"])
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == path)
    }

    /// It isn't missing, although it can't be read: a new ring would replace it.
    @Test func aKeyRingThatCannotBeReadIsNotReplaced() throws {
        let loop = directory.path("loop")
        try FileManager.default.createSymbolicLink(atPath: loop, withDestinationPath: loop)
        #expect(message { try KeyFiles.addKey("k1", makesCurrent: true, to: loop) }.contains("can't be read"))
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: loop) == loop)
    }

    @Test func aSigningKeyIsPrivateToItsOwnerAndNeverReplaced() throws {
        let path = directory.path("key")
        let key = try KeyFiles.generateSigningKey(path)
        #expect(try mode(path) == 0o600)
        #expect(try KeyFiles.publicKey(path) == key)
        #expect(message { try KeyFiles.generateSigningKey(path) }.contains("can't be written"))
        #expect(try KeyFiles.publicKey(path) == key)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["key"])
        try set(0o644, path)
        #expect(message { try KeyFiles.publicKey(path) }.contains("mode 0644"))
    }

    @Test func aChangedKeyRingIsAdoptedAndABrokenOneIsRefused() throws {
        let path = directory.path("ring")
        _ = try KeyFiles.addKey("k1", makesCurrent: true, to: path)
        let file = try KeyRingFile(path)
        #expect(try file.ring().current == "k1")
        _ = try KeyFiles.addKey("k2", makesCurrent: false, to: path)
        // The file is overwritten in place many times in a moment, with the same size: each version is noticed.
        for number in 1...40 {
            let id = "k\(1 + number % 2)"
            let text = try KeyRing.using(id, in: String(contentsOfFile: path, encoding: .utf8))
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            #expect(try file.ring().current == id)
        }
        _ = try KeyFiles.useKey("k2", in: path)
        #expect(try file.ring().current == "k2")
        _ = try KeyFiles.useKey("k1", in: path)
        #expect(try file.ring().current == "k1")
        try set(0o644, path)
        #expect(message { try file.ring() }.contains("mode 0644"))
        try set(0o600, path)
        try Data("nonsense".utf8).write(to: URL(fileURLWithPath: path))
        try set(0o600, path)
        #expect(message { try file.ring() }.contains("Line 1"))
        try FileManager.default.removeItem(atPath: path)
        #expect(message { try file.ring() }.contains("can't be read"))
    }

    @Test func aNewStoreIsPrivateToItsOwner() throws {
        let path = directory.path("new.sqlite")
        let store = try Store.create(path: path)
        try store.write { try $0.execute(sql: "CREATE TABLE a(id INTEGER PRIMARY KEY)") }
        for suffix in ["", "-wal", "-shm"] { #expect(try mode(path + suffix) == 0o600, "\(suffix)") }
        #expect(try StoreDoctor.examine(path: path).first { $0.check == "permissions" }?.level == .ok)
        let lock = try StoreLock(store: path)
        #expect(try mode(path + ".lock") == 0o600)
        withExtendedLifetime(lock) {}
    }

    @Test func anExistingDatabaseKeepsItsModeAndItsGroupCanTakeTheLock() throws {
        let path = directory.path("old.sqlite")
        try Data().write(to: URL(fileURLWithPath: path))
        try set(0o664, path)
        let store = try Store.create(path: path)
        try store.write { try $0.execute(sql: "CREATE TABLE a(id INTEGER PRIMARY KEY)") }
        #expect(try mode(path) == 0o664)
        let lock = try StoreLock(store: path)
        #expect(try mode(path + ".lock") == 0o660)
        withExtendedLifetime(lock) {}
        let finding = try #require(try StoreDoctor.examine(path: path).first { $0.check == "permissions" })
        #expect(finding.level == .warning && finding.message.contains("read \(path) (mode 0664)"))
        #expect(finding.message.contains("-wal") && !finding.message.contains(".lock"))
        try set(0o666, path)
        #expect(
            try StoreDoctor.examine(path: path).contains { $0.message.contains("can write \(path) (mode 0666)") })
    }
}
