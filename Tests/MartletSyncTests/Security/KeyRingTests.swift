import Foundation
import MartletStore
import MartletSync
import Testing

@Suite struct KeyRingTests {
    private let key = Data(repeating: 7, count: 32).base64EncodedString()

    private func problem(_ text: String) -> String? {
        do {
            _ = try KeyRing(parsing: text)
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test func keysCommentsAndTheCurrentKeyAreRead() throws {
        let ring = try KeyRing(parsing: "# of 2026\n\n2026-01 \(key)\n2026-02  \(key)   current\n")
        #expect(ring.ids == ["2026-01", "2026-02"])
        #expect(ring.current == "2026-02")
    }

    @Test func errorsStateTheProblemWithoutShowingAKey() {
        let short = Data(repeating: 7, count: 31).base64EncodedString()
        let cases = [
            "": "has no keys", "a \(key)": "No key is marked", "a \(key) current\nb \(key) current": "both marked",
            "a \(key)\na \(key) current": "repeats", "a \(short) current": "Line 1", "a \(key) curent": "Line 1",
            "\n/ \(key) current": "Line 2", "a": "Line 1",
        ]
        for (text, expected) in cases {
            let found = problem(text)
            #expect(found?.contains(expected) == true, "\(text): \(found ?? "")")
            #expect(found?.contains(key) != true && found?.contains(short) != true)
        }
    }

    @Test func descriptionsNeverShowAKey() throws {
        let ring = try KeyRing(parsing: "a \(key) current")
        let signingKey = NodeSigningKey()
        var dumped = "\(ring) \(String(reflecting: ring)) \(signingKey) \(String(reflecting: signingKey))"
        dump(ring, to: &dumped)
        dump(signingKey, to: &dumped)
        dump(MessageSecurity(keys: FixedKeys(ring), signingKey: signingKey), to: &dumped)
        #expect(!dumped.contains(key))
        #expect(!dumped.contains(signingKey.secretText.dropFirst(20)))
        #expect(dumped.contains(signingKey.publicKey.description))
    }

    @Test func keysAreAddedAndSwitchedInPlace() throws {
        var text = try KeyRing.adding("a", makesCurrent: false, to: "# ours\n")
        #expect(try KeyRing(parsing: text).current == "a")
        text = try KeyRing.adding("b", makesCurrent: false, to: text)
        #expect(try KeyRing(parsing: text).current == "a")
        text = try KeyRing.adding("c", makesCurrent: true, to: text)
        #expect(try KeyRing(parsing: text).current == "c")
        text = try KeyRing.using("b", in: text)
        let ring = try KeyRing(parsing: text)
        #expect(ring.current == "b" && ring.ids == ["a", "b", "c"])
        #expect(text.hasPrefix("# ours\n"))
        #expect(throws: StoreError.self) { try KeyRing.adding("b", makesCurrent: false, to: text) }
        #expect(throws: StoreError.self) { try KeyRing.adding("no good", makesCurrent: false, to: text) }
        #expect(throws: StoreError.self) { try KeyRing.using("d", in: text) }
    }

    @Test func aSigningKeyIsReadBackFromItsText() throws {
        let key = NodeSigningKey()
        #expect(try NodeSigningKey(parsing: key.secretText + "\n").publicKey == key.publicKey)
        #expect(NodePublicKey(key.publicKey.description) == key.publicKey)
        #expect(NodePublicKey("ed25519:AAAA") == nil)
        #expect(throws: StoreError.self) { try NodeSigningKey(parsing: key.publicKey.description) }
    }
}
