import Foundation
import MartletStore
import Testing

/// Stores have saved these IDs, so that their derivation must never change. Python's SHA-256 computed the expected
/// ones.
struct HiddenIDTests {
    private let namespace = UUID(uuidString: "8A5B1C3E-0F2D-4B6A-9C8E-7D1F2A3B4C5D") ?? UUID()

    private func id(_ text: String) throws -> StableID {
        let uuid = try #require(UUID(uuidString: text))
        return StableID(hidden: withUnsafeBytes(of: uuid.uuid) { Array($0) })
    }

    @Test func derivedIDsNeverChange() throws {
        #expect(
            try HiddenID.existing(namespace: namespace, entity: "naïve table", row: -7)
                == id("8C5B482F-C733-8F24-AB5A-25F70227BE87"))
        #expect(
            try HiddenID.inserted(namespace: namespace, change: 1 << 40, time: 1_764_240_000_000)
                == id("7D2DC324-D44E-8330-B565-182BC83BAD6B"))
        #expect(
            try HiddenID.reserved(namespace: namespace, entity: "trip", change: 42, time: -1)
                == id("08D73352-10D0-8C77-B7C7-1A0F2B02746E"))
    }
}
