import Foundation
import MartletSync
import Testing

/// A header without its version.
private let rest = "-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
private let valid = "00" + rest

/// IDs and headers of W3C Trace Context.
@Suite struct TraceContextTests {
    /// Another program computed these from docs/wire-format.md: they must not change.
    private static let vectors: [(String, Int64, String)] = [
        ("01234567-89AB-CDEF-0123-456789ABCDEF", 1, "00-901f5797ec4e7efa8414b7a7c98f6cc8-fc17c4de649cd7e9-01"),
        ("01234567-89AB-CDEF-0123-456789ABCDEF", 42, "00-d02a14f4eb991d9db53399c93eff9d24-22fc6377767b0cb5-01"),
        ("FFFFFFFF-FFFF-4FFF-BFFF-FFFFFFFFFFFF", .max, "00-846279140c4707403234adc7e733813d-9e0f8352a0be4809-01"),
    ]

    @Test(arguments: vectors) func theTraceIsDerivedFromOriginAndSequence(
        _ origin: String, _ sequence: Int64, _ expected: String
    ) throws {
        let uuid = try #require(UUID(uuidString: origin))
        let trace = TraceContext(origin: NodeID(uuid), sequence: sequence)
        #expect(trace.traceparent == expected)
        #expect(trace.isSampled)
        #expect(TraceContext(traceparent: expected) == trace)
    }

    @Test func aHeaderIsReadAndWritten() throws {
        let trace = try #require(TraceContext(traceparent: valid))
        #expect(trace.traceID == "0af7651916cd43dd8448eb211c80319c" && trace.spanID == "b7ad6b7169203331")
        #expect(trace.isSampled && trace.traceparent == valid)
        let unsampled = try #require(TraceContext(traceparent: valid.replacingOccurrences(of: "-01", with: "-02")))
        #expect(!unsampled.isSampled && unsampled.traceparent.hasSuffix("-02"))
    }

    @Test func theKnownPartOfALaterVersionIsRead() {
        for later in ["01\(rest)", "fe\(rest)-what-may-come"] {
            #expect(TraceContext(traceparent: later)?.traceparent == valid)
        }
        // Flags without a meaning so far are not passed on.
        let flags = TraceContext(traceparent: valid.replacingOccurrences(of: "-01", with: "-ff"))
        #expect(flags?.traceparent == valid.replacingOccurrences(of: "-01", with: "-03"))
    }

    @Test(arguments: [
        "", "00", "of somebody else", valid.uppercased(), " \(valid)", "\(valid) ", "\(valid)-", "\(valid)-00",
        "ff\(rest)", "0g\(rest)", "01\(rest)00", "01\(rest)-\(String(repeating: "0", count: 300))",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-+1",
        "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
        "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331c-01",
    ])
    func aMalformedHeaderIsIgnored(_ text: String) {
        #expect(TraceContext(traceparent: text) == nil)
    }

    // MARK: Transaction contexts

    @Test func anApplicationGivesItsTraceAmongOtherWords() throws {
        let alone = try #require(GivenTrace(in: "traceparent=\(valid)"))
        #expect(alone.trace.traceparent == valid && alone.state == nil)
        let among = try #require(
            GivenTrace(in: "checkout traceparent=\(valid) tracestate=rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"))
        #expect(among.trace == alone.trace && among.state == "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")
        #expect(GivenTrace(in: GivenTrace.context(of: alone.trace)) == alone)
    }

    @Test(arguments: [
        "", "checkout", valid, "traceparent=", "traceparent=nothing", "traceparent = \(valid)",
        "Traceparent=\(valid)", "traceparent=\(valid) traceparent=\(valid)",
    ])
    func otherContextsContainNoTrace(_ context: String) {
        #expect(GivenTrace(in: context) == nil)
    }

    @Test(arguments: [
        "", "rojo", "=1", "rojo=", "rojo=1,", "r\u{f6}jo=1", "rojo=\(String(repeating: "1", count: 508))",
        Array(repeating: "a=1", count: 33).joined(separator: ","),
    ])
    func aMalformedStateIsLeftOut(_ state: String) throws {
        let given = try #require(GivenTrace(in: "traceparent=\(valid) tracestate=\(state)"))
        #expect(given.state == nil && given.trace.traceparent == valid)
    }
}
