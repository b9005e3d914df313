; Untested on Windows. The installer for it, for one user and without rights of an administrator:
;   makensis -DVERSION=0.1.0 -DBUNDLE=..\..\build\packaging\dist\gatewright -DOUT=..\..\dist\gatewright-setup.exe gatewright.nsi
; Where SIGN is defined as a command, that command signs the installer and its uninstaller: -DSIGN="signtool sign ...".
Unicode true
!include MUI2.nsh
Name "Gatewright"
OutFile "${OUT}"
InstallDir "$LOCALAPPDATA\Programs\Gatewright"
InstallDirRegKey HKCU "Software\Gatewright" "Folder"
RequestExecutionLevel user
SetCompressor /SOLID lzma
!ifdef SIGN
  !finalize '${SIGN} "%1"'
  !uninstfinalize '${SIGN} "%1"'
!endif
!define ROW "Software\Microsoft\Windows\CurrentVersion\Uninstall\Gatewright"

!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

Section
  RMDir /r "$INSTDIR\_internal"
  SetOutPath "$INSTDIR"
  File /r "${BUNDLE}/*"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\Gatewright.lnk" "$INSTDIR\gatewright-window.exe"
  WriteRegStr HKCU "Software\Gatewright" "Folder" "$INSTDIR"
  WriteRegStr HKCU "${ROW}" "DisplayName" "Gatewright"
  WriteRegStr HKCU "${ROW}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${ROW}" "DisplayIcon" "$INSTDIR\gatewright-window.exe"
  WriteRegStr HKCU "${ROW}" "UninstallString" '"$INSTDIR\uninstall.exe"'
SectionEnd

; What the user made stays: workspaces, keys and preferences lie elsewhere.
Section "Uninstall"
  RMDir /r "$INSTDIR\_internal"
  Delete "$INSTDIR\gatewright.exe"
  Delete "$INSTDIR\gatewright-window.exe"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\Gatewright.lnk"
  DeleteRegKey HKCU "${ROW}"
  DeleteRegKey HKCU "Software\Gatewright"
SectionEnd
