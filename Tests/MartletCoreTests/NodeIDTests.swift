import Foundation
import MartletCore
import MartletTestSupport
import Testing

@Suite struct NodeIDTests {
    @Test func aNodeIDParsesTextLikeFoundation() throws {
        var random = SplitMix(seed: 1)
        for _ in 0..<50 {
            let uuid = random.uuid()
            #expect(NodeID(text: Array(uuid.uuidString.utf8)) == NodeID(uuid))
            #expect(NodeID(text: Array(uuid.uuidString.lowercased().utf8)) == NodeID(uuid))
        }
    }

    @Test(arguments: [
        "", "0", "01234567-89AB-CDEF-0123-456789ABCDE", "01234567-89AB-CDEF-0123-456789ABCDEF0",
        "01234567089AB-CDEF-0123-456789ABCDEF", "0123456-789AB-CDEF-0123-456789ABCDEF",
        "01234567-89AB-CDEF-0123-456789ABCDEG", "01234567-89AB-CDEF-0123-456789ABCD/:",
        "01234567-89AB-CDEF-0123-456789ABCD@`",
        "{1234567-89AB-CDEF-0123-456789ABCDE}",
    ])
    func invalidTextIsNoNodeID(text: String) { #expect(NodeID(text: Array(text.utf8)) == nil) }
}
