/// The 64-bit hash FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/). In contrast to Swift's hashes it is the same in
/// every run and on every machine. It does not withstand somebody who looks for two inputs with the same hash.
package struct FNV1a: Sendable {
    package private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    package init() {}

    package init(_ bytes: some Sequence<UInt8>) { add(bytes) }

    package mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 }

    package mutating func add(_ bytes: some Sequence<UInt8>) { for byte in bytes { add(byte) } }

    package mutating func add(_ bytes: UnsafeRawBufferPointer) { for byte in bytes { add(byte) } }
}
