import Foundation
import MartletKafka
import MartletTestSupport
import Testing

/// The claims of a token, and which token files are accepted.
@Suite struct KafkaTokenTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A JWT with the payload and an invalid signature.
    private func token(_ payload: String, signature: String = "c2lnbmVk") -> String {
        let parts = [#"{"alg":"RS256"}"#, payload].map {
            Data($0.utf8).base64EncodedString().replacingOccurrences(of: "+", with: "-")
                .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
        }
        return (parts + [signature]).joined(separator: ".")
    }

    private func file(_ text: String, mode: Int = 0o600) throws -> KafkaTokenFile {
        let path = folder.path("token")
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return try file(at: path)
    }

    private func file(at path: String) throws -> KafkaTokenFile {
        var configuration = KafkaConfiguration()
        configuration.credentials = KafkaCredentials(tokenFile: path)
        return try #require(configuration.tokenFile)
    }

    /// After the wall clock was set back, librdkafka would ask too late.
    @Test func aFileThatLibrdkafkaDoesNotAskForIsReadAgain() {
        var schedule = TokenSchedule()
        let begin = ContinuousClock.now
        #expect(!schedule.isOverdue(at: begin + .seconds(1000)))
        schedule.noteReading(at: begin)
        #expect(!schedule.isOverdue(at: begin + .seconds(59)))
        #expect(schedule.isOverdue(at: begin + .seconds(61)))
        schedule.noteReading(at: begin + .seconds(61))
        #expect(!schedule.isOverdue(at: begin + .seconds(62)))
    }

    /// Why a file is refused; empty if it is accepted.
    private func reason(_ file: KafkaTokenFile) -> String {
        do throws(KafkaTokenError) {
            _ = try file.read(now: 1_000_000)
            return ""
        } catch {
            return error.reason
        }
    }

    @Test func aJWTHasAnExpiryAndASubject() throws {
        let text = token(#"{"sub":"phone?>","exp":1700000000.5,"scope":["a"]}"#)
        let read = try KafkaToken("\n \(text)\r\n")
        #expect(read.value.value == text)
        #expect(read.subject == "phone?>")
        #expect(read.expiry == 1_700_000_000_500)
    }

    @Test func aTokenWithoutASignatureIsRead() throws {
        #expect(try KafkaToken(token(#"{"exp":7}"#, signature: "")).expiry == 7000)
    }

    @Test(arguments: [
        #"{}"#, #"{"sub":"","exp":"soon"}"#, #"{"sub":7,"exp":true}"#, #"{"exp":1e300}"#, #"{"exp":-1}"#, "[1]",
        "no JSON", "",
    ]) func missingOrInvalidClaimsAreNil(payload: String) throws {
        let read = try KafkaToken(token(payload))
        #expect(read.subject == nil && read.expiry == nil)
    }

    @Test(arguments: ["opaque", "a.b", "a.!!.c", "..", "a.b.c.d.e", "bm90.anNvbg.x", "2YotnFZFEjr1zCsicMWpAA=="])
    func opaqueTokensAreAcceptedUnchanged(text: String) throws {
        let read = try KafkaToken(text)
        #expect(read.value.value == text)
        #expect(read.subject == nil && read.expiry == nil)
    }

    @Test(arguments: ["", "\n", " \t\n"]) func anEmptyFileIsRefused(text: String) throws {
        let why = reason(try file(text))
        #expect(why == folder.path("token") + " is empty")
    }

    @Test(arguments: ["two words", "a\u{1}auth=Bearer b", "one\ntwo", "t\u{f6}ken", "nul\0"])
    func aTokenWithUnsafeCharactersIsRefused(text: String) throws {
        let why = reason(try file(text))
        #expect(why.contains("does not hold a token") && !why.contains(text))
    }

    @Test(arguments: [(0o604, "read"), (0o644, "read"), (0o602, "written"), (0o666, "written")])
    func aTokenFileOpenToEveryUserIsRefused(mode: Int, what: String) throws {
        let why = reason(try file(token(#"{"sub":"phone"}"#), mode: mode))
        #expect(why.contains("can be \(what) by every user") && why.contains("mode 0\(String(mode, radix: 8))"))
        #expect(why.contains("chmod") && !why.contains("c2lnbmVk"))
    }

    @Test(arguments: [0o600, 0o400, 0o640, 0o660]) func aTokenFileOpenToItsGroupIsAccepted(mode: Int) throws {
        let why = reason(try file("opaque", mode: mode))
        #expect(why == "")
    }

    @Test func aMissingFileAndADirectoryAreReported() throws {
        let missing = reason(try file(at: "/no/token"))
        #expect(missing == "/no/token can't be read: No such file or directory")
        let directory = reason(try file(at: folder.url.path))
        #expect(directory == "\(folder.url.path) is not a file")
    }

    @Test func anExpiredTokenIsRefused() throws {
        let valid = reason(try file(token(#"{"exp":1001}"#)))
        #expect(valid == "")
        let expired = reason(try file(token(#"{"exp":1000}"#)))
        #expect(expired == folder.path("token") + " expired at 1970-01-01T00:16:40Z")
    }

    @Test func aReplacedFileIsReadAgain() throws {
        let opened = try file("first")
        #expect(try opened.read().value.value == "first")
        _ = try file("second")
        #expect(try opened.read().value.value == "second")
    }

    @Test func aPrintedTokenHidesItsValue() throws {
        let read = try KafkaToken(token(#"{"sub":"phone"}"#, signature: "hush"))
        var printed = "\(read) \(String(reflecting: read))"
        dump(read, to: &printed)
        #expect(!printed.contains("hush") && printed.contains("***"))
    }
}
