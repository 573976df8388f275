/// The error for a rule of ``BusContract`` that a bus broke.
public struct BusContractError: Error, CustomStringConvertible {
    public var description: String

    public init(_ description: String) {
        self.description = description
    }
}
