import Foundation
import MartletSync
import MartletTestSupport
import Testing

@Suite struct ChecksumTests {
    @Test func theChecksumIsThatOfZlib() {
        // The check value from catalogues of checksums (https://reveng.sourceforge.io/crc-catalogue/).
        #expect(CRC32.of(Array("123456789".utf8)) == 0xcbf4_3926)
        #expect(CRC32.digits(Array("123456789".utf8)) == Array("cbf43926".utf8))
        #expect(CRC32.digits([]) == Array("00000000".utf8))
    }

    /// Computes the checksum bit by bit, following its definition.
    private func slow(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(UInt32.max) { sum, byte in
            (0..<8).reduce(sum ^ UInt32(byte)) { sum, _ in sum & 1 == 1 ? 0xedb8_8320 ^ sum >> 1 : sum >> 1 }
        }
    }

    @Test func theChecksumIsRightForEveryLength() {
        var random = SplitMix(seed: 1)
        for count in 0...70 {
            let bytes = random.bytes(count)
            #expect(CRC32.of(bytes) == slow(bytes), "\(bytes)")
        }
    }
}
