import MartletStore
public import MartletSync

/// Creates and shows files with keys, for `martlet key`. Only their owner can read the files that it creates.
public enum KeyFiles {
    /// Creates a signing key.
    ///
    /// - Throws: ``/MartletCore/StoreError`` if the file exists already, or can't be written.
    public static func generateSigningKey(_ path: String) throws -> NodePublicKey {
        let key = NodeSigningKey()
        try SecretFile.write(key.secretText + "\n", to: path, replaces: false)
        return key.publicKey
    }

    /// Returns the public key of a signing key.
    ///
    /// - Throws: ``/MartletCore/StoreError`` if the file is not a signing key, or others can read it.
    public static func publicKey(_ path: String) throws -> NodePublicKey {
        try NodeSigningKey(parsing: SecretFile.read(path, as: "signing key").text).publicKey
    }

    /// Adds a random key to a key ring. Creates the file if it is missing.
    ///
    /// - Throws: ``/MartletCore/StoreError`` if the file is not a key ring, has a key with that ID, or can't be
    ///   written.
    public static func addKey(_ id: String, makesCurrent: Bool, to path: String) throws -> KeyRing {
        let text = SecretFile.isMissing(path) ? "" : try SecretFile.read(path, as: "key ring").text
        return try write(try KeyRing.adding(id, makesCurrent: makesCurrent, to: text), path)
    }

    /// Makes another key of the ring the current one, which encrypts payloads from now on.
    ///
    /// - Throws: the same errors as ``addKey(_:makesCurrent:to:)``.
    public static func useKey(_ id: String, in path: String) throws -> KeyRing {
        try write(try KeyRing.using(id, in: try SecretFile.read(path, as: "key ring").text), path)
    }

    /// Reads a key ring.
    ///
    /// - Throws: ``/MartletCore/StoreError`` if the file is not a key ring, or others can read it.
    public static func ring(_ path: String) throws -> KeyRing {
        try KeyRing(parsing: SecretFile.read(path, as: "key ring").text)
    }

    private static func write(_ text: String, _ path: String) throws -> KeyRing {
        let ring = try KeyRing(parsing: text)
        try SecretFile.write(text, to: path, replaces: true)
        return ring
    }
}
