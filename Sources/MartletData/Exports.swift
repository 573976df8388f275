// As in SwiftData, importing this module also gives a file Foundation's types and observation.
@_exported public import Foundation
@_exported public import Observation
