// As SwiftData does: a file that imports it has Foundation's types and observation too.
@_exported public import Foundation
@_exported public import Observation
