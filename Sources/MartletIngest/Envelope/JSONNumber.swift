import Foundation

/// A number in JSON, as exactly as `JSONDecoder` reads it.
struct JSONNumber: Sendable, Equatable {
    /// The number as an integer, if it is one of 64 bits. 1.0 is one, too: how it was written is not known.
    let whole: Int64?
    let real: Double
    /// The number in decimal, if it is no ``whole``. Nil if it is beyond the range of `Decimal`.
    private let decimal: Decimal?

    init?(_ container: any SingleValueDecodingContainer) {
        guard let real = try? container.decode(Double.self) else { return nil }
        self.real = real
        whole = try? container.decode(Int64.self)
        decimal = whole == nil ? try? container.decode(Decimal.self) : nil
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
