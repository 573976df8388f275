import Crypto
import Foundation
import Logging
package import MartletBus
package import MartletCore
import Synchronization

/// Encrypts and signs the messages that a node sends; verifies and decrypts those that it reads. Safe to use from any
/// thread.
///
/// Each message is encrypted separately, and so is each chunk: a message from a node without the key is never stored as
/// a chunk or decoded.
package final class MessageGuard: Sendable {
    /// The number of bytes that encryption adds to a payload: nonce and tag.
    package static let overhead = 28

    package let configuration: SecurityConfiguration
    private let source: (any KeySource)?
    private let signingKey: NodeSigningKey?
    private let ownKey: NodePublicKey?
    private let log: Logger
    private let state: Mutex<State>

    private struct State {
        var ring: KeyRing?
        /// The number of key ring changes so far.
        var generation = 0
        var derived: [Derived: SymmetricKey] = [:]
        var problem: String?
    }

    private struct Derived: Hashable {
        var id: String
        var origin: NodeID
    }

    /// - Throws: `StoreError` if the configuration is invalid, and any error of the key source.
    package init(_ security: MessageSecurity) throws {
        let problems = security.configuration.validate()
        guard problems.isEmpty else {
            throw StoreError(.invalidArgument, "Invalid security configuration: \(problems.joined(separator: "; ")).")
        }
        configuration = security.configuration
        source = security.keys
        signingKey = security.signingKey
        ownKey = security.signingKey?.publicKey
        log = security.log
        state = Mutex(State(ring: try security.keys?.ring()))
    }

    package var seals: Bool { source != nil }
    private var signs: Bool { signingKey != nil }
    /// False if messages are accepted without any proof.
    package var proves: Bool { seals || signs || configuration.origins != nil }

    /// Returns how many payload bytes a message may have before encryption.
    package func room(in bytes: Int) -> Int { seals ? max(1, bytes - Self.overhead) : bytes }

    // MARK: Keys

    /// Loads the key ring again if it has changed. If it can't be read, the previous one stays in use.
    ///
    /// - Returns: a number that increases with each change.
    @discardableResult
    package func refresh() -> Int {
        guard let source else { return 0 }
        let found = Result { try source.ring() }
        let (generation, problem) = state.withLock { state -> (Int, String?) in
            switch found {
            case .success(let ring):
                state.problem = nil
                guard ring != state.ring else { break }
                state.ring = ring
                state.derived = [:]
                state.generation += 1
            case .failure(let error):
                let text = "\(error)"
                defer { state.problem = text }
                if state.problem != text { return (state.generation, text) }
            }
            return (state.generation, nil)
        }
        if let problem {
            log.error("Could not read the key ring; keeping the previous one", metadata: ["error": "\(problem)"])
        }
        return generation
    }

    /// The IDs of the present keys, and the number of key ring changes so far.
    package var ring: (ids: Set<String>, generation: Int) {
        state.withLock { (Set($0.ring.map { Array($0.keys.keys) } ?? []), $0.generation) }
    }

    /// Returns the key for one origin's messages. With a key per origin, the limit of 2^32 encrypted messages applies
    /// to each node and not to all nodes together.
    private func key(_ id: String, _ origin: NodeID) -> (key: SymmetricKey?, generation: Int) {
        state.withLock { state in
            let name = Derived(id: id, origin: origin)
            if let key = state.derived[name] { return (key, state.generation) }
            guard let master = state.ring?.keys[id] else { return (nil, state.generation) }
            let key = HKDF<SHA256>.deriveKey(
                inputKeyMaterial: master, info: Data("martlet payload 1".utf8) + Data(origin.bytes), outputByteCount: 32
            )
            // Bounded, since messages can claim any number of origins.
            if state.derived.count >= 1000 { state.derived = [:] }
            state.derived[name] = key
            return (key, state.generation)
        }
    }

    // MARK: Sending

    /// Returns the message as it is sent to the topic: encrypted and signed, as far as configured. Every call encrypts
    /// anew, so two messages with equal contents don't look the same.
    package func seal(_ message: OutgoingMessage, topic: String, origin: NodeID) throws -> OutgoingMessage {
        // An empty message on a snapshot topic only replaces an older one, and has no contents.
        guard seals || signs, !(message.headers.isEmpty && message.payload.isEmpty) else { return message }
        var message = message
        message.headers.removeAll { $0.name == WireHeader.checksum }
        let id = state.withLock { $0.ring?.current }
        if let id { message.headers.append(MessageHeader(WireHeader.keyID, id)) }
        let associated = try AssociatedData.encode(topic: topic, key: message.key, headers: message.headers)
        if let id {
            guard let key = key(id, origin).key else {
                throw StoreError(.invalidArgument, "The key ring has no key \(id).")
            }
            let box = try AES.GCM.seal(message.payload, using: key, authenticating: associated)
            guard let sealed = box.combined else {
                throw StoreError(.invalidArgument, "The payload can't be encrypted.")
            }
            message.payload = Array(sealed)
        }
        message.headers.append(MessageHeader(WireHeader.checksum, CRC32.digits(message.payload)))
        if let signingKey {
            let signature = try signingKey.signature(of: AssociatedData.signed(associated, message.payload))
            message.headers.append(MessageHeader(WireHeader.signature, Data(signature).base64EncodedString()))
        }
        return message
    }

    // MARK: Reading

    /// Verifies a message (its size, origin, signature and encryption) and returns it decrypted.
    ///
    /// - Parameter node: this node.
    /// - Returns: the message with its original payload, and without the headers for checksum, signature and key.
    ///   Unchanged if this node requires no proof and the message is not encrypted.
    /// - Throws: ``WireError`` with ``WireError/isUnproven`` set: nothing in the message can be relied on.
    package func open(_ message: IncomingMessage, topic: String, node: NodeID) throws(WireError) -> IncomingMessage {
        if let problem = message.problem { throw .unproven(problem) }
        let byteCount = message.cut?.byteCount ?? message.payload.count
        guard message.cut == nil, byteCount <= configuration.maxMessageBytes else {
            throw .unproven(
                """
                The message has \(byteCount) bytes; the limit is \(configuration.maxMessageBytes) \
                (security.limits.maxMessageBytes).
                """
            )
        }
        let keyID = message.header(WireHeader.keyID).map { String(decoding: $0, as: UTF8.self) }
        guard proves || keyID != nil else { return message }
        guard let origin = message.header(WireHeader.origin).flatMap({ NodeID(text: $0) }) else {
            throw .unproven("The message has no valid \(WireHeader.origin) header.")
        }
        guard message.isIntact else { throw .unproven(WireError.notIntact.description) }
        let associated = try AssociatedData.encode(topic: topic, key: message.key, headers: message.headers)
        let isSigned = try checkOrigin(message, origin, associated, isOwn: origin == node)
        var opened = message
        opened.headers.removeAll { [WireHeader.checksum, WireHeader.signature, WireHeader.keyID].contains($0.name) }
        do {
            if let keyID {
                opened.payload = try open(message.payload, keyID, origin, associated)
            } else if seals {
                try checkPlaintext(message)
            }
        } catch {
            var error = error
            error.isSigned = isSigned
            throw error
        }
        return opened
    }

    /// Returns whether the message has its origin's signature. False if none is required.
    private func checkOrigin(
        _ message: IncomingMessage, _ origin: NodeID, _ associated: [UInt8], isOwn: Bool
    ) throws(WireError) -> Bool {
        var keys = configuration.origins?[origin.uuid]
        if isOwn, let ownKey { keys = (keys ?? []) + [ownKey] }
        guard let keys else {
            if configuration.origins == nil || isOwn { return false }
            throw .unproven("It is from node \(origin), which is not in security.origins.")
        }
        guard !keys.isEmpty else { return false }
        guard let text = message.header(WireHeader.signature) else {
            throw .unproven("It is not signed, but node \(origin) signs its messages (security.origins).")
        }
        guard let signature = Data(base64Encoded: Data(text)) else { throw .unproven("Its signature is not Base64.") }
        let signed = AssociatedData.signed(associated, message.payload)
        guard keys.contains(where: { $0.isValid(Array(signature), of: signed) }) else {
            throw .unproven("Its signature is not from node \(origin): the message is forged, changed or moved.")
        }
        return true
    }

    private func checkPlaintext(_ message: IncomingMessage) throws(WireError) {
        switch configuration.acceptPlaintext {
        case .accept: return
        case .before(let date):
            if message.isBrokerTimestamp, message.timestamp < Int64(date.timeIntervalSince1970 * 1000) { return }
        case .refuse: break
        }
        throw .unproven("It is not encrypted, and this node accepts only encrypted ones (security.acceptPlaintext).")
    }

    private func open(
        _ payload: [UInt8], _ id: String, _ origin: NodeID, _ associated: [UInt8]
    ) throws(WireError) -> [UInt8] {
        guard KeyRing.isID(id) else { throw .unproven("The header \(WireHeader.keyID) is not a key ID.") }
        var (key, generation) = key(id, origin)
        if key == nil {
            refresh()
            (key, generation) = self.key(id, origin)
        }
        guard let key else {
            throw .missingKey(
                id, generation,
                seals
                    ? "It is encrypted with key \(id), which is not in the key ring."
                    : "It is encrypted with key \(id), but this node has no key ring (security.keyRingFile).")
        }
        guard let box = try? AES.GCM.SealedBox(combined: payload),
            let opened = try? AES.GCM.open(box, using: key, authenticating: associated)
        else {
            throw .missingKey(
                id, generation,
                """
                It can't be decrypted with key \(id): it was encrypted with another key of that ID, or was forged, \
                changed or moved.
                """
            )
        }
        return Array(opened)
    }
}
