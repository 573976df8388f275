import Foundation

/// A number in JSON, as exactly as `JSONDecoder` reads it.
struct JSONNumber: Sendable, Equatable {
    /// The number as an integer, if it is one of 64 bits. 1.0 is one, too: how it was written is not known.
    let whole: Int64?
    let real: Double
    /// Nil if the number is beyond the range of `Decimal`.
    private let decimal: Decimal?

    init?(_ container: any SingleValueDecodingContainer) {
        guard let real = try? container.decode(Double.self) else { return nil }
        self.real = real
        // Decoded as an integer, some numbers lose their fraction (seen with Swift 6.3: 9007199254740993.7), and others
        // end the process: those that have a whole value but too many digits for `Decimal`.
        decimal = try? container.decode(Decimal.self)
        whole = decimal.flatMap { Int64("\($0)") }
    }

    /// The most digits of which `Decimal` rounds none.
    private static let exactDigits = 38

    /// Returns the number in decimal, without an exponent where it is in the range of `Decimal`.
    ///
    /// - Throws: ``IngestError/Code/invalidValue`` if it has more digits than can be read exactly.
    func text() throws(IngestError) -> String {
        if let whole { return String(whole) }
        guard let decimal else { return "\(real)" }
        // Digits, and perhaps a sign.
        guard "\(decimal.significand)".filter(\.isNumber).count <= Self.exactDigits else {
            throw IngestError(
                .invalidValue, "a number has more than \(Self.exactDigits) digits",
                hint: "Set decimal.handling.mode to string in the connector.")
        }
        return "\(decimal)"
    }
}
