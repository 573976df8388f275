import SwiftSyntax

/// Detects types that no store can contain, as far as their spelling reveals it. The compiler finds the rest.
enum UnstorableType {
    /// A description of the type, as the beginning of a sentence. Nil for a type that may be storable.
    static func name(_ type: TypeSyntax) -> String? {
        if let optional = type.as(OptionalTypeSyntax.self) { return name(optional.wrappedType) }
        if let array = type.as(ArrayTypeSyntax.self) { return name(array.element) }
        if let attributed = type.as(AttributedTypeSyntax.self) { return name(attributed.baseType) }
        if let tuple = type.as(TupleTypeSyntax.self) {
            guard tuple.elements.count == 1, let only = tuple.elements.first else { return "A tuple" }
            return name(only.type)
        }
        if type.is(FunctionTypeSyntax.self) { return "A function" }
        if type.is(SomeOrAnyTypeSyntax.self) || ["Any", "AnyObject"].contains(type.trimmedDescription) {
            return "A value of unknown type"
        }
        return nil
    }
}
