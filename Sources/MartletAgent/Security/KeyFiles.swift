import MartletStore
public import MartletSync

/// Makes and shows files with keys, for `martlet key`. What is made is readable by its owner alone.
public enum KeyFiles {
    /// Makes a signing key.
    ///
    /// - Throws: ``/MartletCore/StoreError`` where the file is there already, or can't be written.
    public static func generateSigningKey(_ path: String) throws -> NodePublicKey {
        let key = NodeSigningKey()
        try SecretFile.write(key.secretText + "\n", to: path, replaces: false)
        return key.publicKey
    }

    /// - Throws: ``/MartletCore/StoreError`` where the file is no signing key, or others can read it.
    public static func publicKey(_ path: String) throws -> NodePublicKey {
        try NodeSigningKey(parsing: SecretFile.read(path, as: "signing key").text).publicKey
    }

    /// Adds a random key to a key ring, and makes the file where it is not there.
    ///
    /// - Throws: ``/MartletCore/StoreError`` where the file is no key ring, has a key of that ID, or can't be written.
    public static func addKey(_ id: String, makesCurrent: Bool, to path: String) throws -> KeyRing {
        let text = SecretFile.version(path) == nil ? "" : try SecretFile.read(path, as: "key ring").text
        return try write(try KeyRing.adding(id, makesCurrent: makesCurrent, to: text), path)
    }

    /// Makes another key of the ring seal what is sent from now on.
    ///
    /// - Throws: as ``addKey(_:makesCurrent:to:)``.
    public static func useKey(_ id: String, in path: String) throws -> KeyRing {
        try write(try KeyRing.using(id, in: try SecretFile.read(path, as: "key ring").text), path)
    }

    /// - Throws: ``/MartletCore/StoreError`` where the file is no key ring, or others can read it.
    public static func ring(_ path: String) throws -> KeyRing {
        try KeyRing(parsing: SecretFile.read(path, as: "key ring").text)
    }

    private static func write(_ text: String, _ path: String) throws -> KeyRing {
        let ring = try KeyRing(parsing: text)
        try SecretFile.write(text, to: path, replaces: true)
        return ring
    }
}
