import MartletCore
import Testing

@Suite struct FNV1aTests {
    /// From draft-eastlake-fnv, section "FNV test vectors".
    private static let vectors: [(String, UInt64)] = [
        ("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8),
    ]

    @Test(arguments: vectors)
    func theHashIsThatOfTheSpecification(_ text: String, _ hash: UInt64) {
        #expect(FNV1a(text.utf8).value == hash)
        var raw = FNV1a()
        Array(text.utf8).withUnsafeBytes { raw.add($0) }
        #expect(raw.value == hash)
    }
}
